// The groups of the page, unpacked when they are opened, and the settings they are looked at with.

const store = { overview: null, groups: new Map(), settings: null, listeners: [] };

async function unpack(id) {
  const packed = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return JSON.parse(await new Response(stream).text());
}

async function openGroup(at) {
  if (!store.groups.has(at)) store.groups.set(at, prepare(await unpack(`group-${at}`)));
  return store.groups.get(at);
}

// Flat arrays beside the values: the rollout and the time of every step.
function prepare(group) {
  group.starts = [0];
  group.rolloutOf = [];
  group.time = [];
  group.rollouts.forEach((rollout, r) => {
    for (let t = 0; t < rollout.steps; t++) {
      group.rolloutOf.push(r);
      group.time.push(t);
    }
    group.starts.push(group.rolloutOf.length);
  });
  group.n = group.rolloutOf.length;
  group.byName = new Map(group.levels.map((level) => [level.name, level]));
  group.found = new Map();
  return group;
}

function defaults(config) {
  return {
    gamma: config.gamma,
    n_prior: config.n_prior ?? 2,
    prior: config.prior ?? 'success_rate',
    level: config.level,
    leave_one_out: config.leave_one_out ?? false,
    repeats: config.repeats ?? 'first',
    normalize: config.normalize,
    std: config.std ?? 'population',
    estimator: config.estimator,
  };
}

function levelOf(group) {
  return group.byName.get(store.settings.level) || group.byName.get(group.level) || group.levels[0];
}

// What an estimator finds in a group under the present settings; kept until they change.
function creditOf(group, name) {
  const kept = JSON.stringify([name, store.settings]);
  if (!group.found.has(kept)) {
    if (group.found.size > 24) group.found.clear();
    group.found.set(kept, ESTIMATORS[name]
      ? ESTIMATORS[name](group, levelOf(group), store.settings)
      : { advantages: Float64Array.from(group.given[name], (v) => (v === null ? NaN : v)) });
  }
  return group.found.get(kept);
}

// The credit of some steps of one action in one state: the mean of the first visits, where the
// estimator tells them from repeats.
function worth(group, steps) {
  const found = creditOf(group, store.settings.estimator);
  const firsts = found.tree ? steps.filter((i) => found.tree.firstInCell[i]) : steps;
  const values = (firsts.length ? firsts : steps).map((i) => found.advantages[i]).filter(isNumber);
  return { value: values.length ? mean(values) : NaN, differ: new Set(values).size > 1 };
}

function tally(group, rollouts) {
  const count = { passed: 0, failed: 0, incomplete: 0, unknown: 0 };
  for (const r of rollouts) count[group.rollouts[r].status] += 1;
  return Object.entries(count).filter(([, n]) => n).map(([status, n]) => `${n} ${status}`).join(', ');
}

function estimatorNames(group) {
  return [...Object.keys(ESTIMATORS), ...Object.keys(group.given)];
}

function change(settings) {
  Object.assign(store.settings, settings);
  store.listeners.forEach((listener) => listener(settings));
}

function stepName(group, i) {
  return `${named(group.rollouts[group.rolloutOf[i]].id, 40)}, step ${group.time[i]}`;
}
