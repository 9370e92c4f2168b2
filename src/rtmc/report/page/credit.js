// The estimators, from flat arrays: the same formulas as the Python package (docs/method.md).
//
// A group has n steps in all: rewards[i] (r_t with outcome and bonus, null where the rollout does
// not vote), rolloutOf[i], time[i], starts[r]. A level has the numbers of states and actions.

function computeReturns(group, gamma) {
  const returns = new Float64Array(group.n).fill(NaN);
  group.rollouts.forEach((rollout, r) => {
    if (rollout.outcome === null) return;
    let sum = 0;
    for (let i = group.starts[r + 1] - 1; i >= group.starts[r]; i--) {
      sum = group.rewards[i] + gamma * sum;
      returns[i] = sum;
    }
  });
  return returns;
}

// First visits of every (s, a), by the rollouts that vote.
function buildTree(group, level) {
  const { states, actions } = level;
  const cellOf = new Int32Array(group.n).fill(-1);
  const firstInCell = new Uint8Array(group.n);
  const firstInState = new Uint8Array(group.n);
  const cells = [];          // {state, action, steps: first visits}
  const ofState = level.stateKeys.map(() => []);  // the cells of each state
  const index = new Map();
  const visitedBy = [];      // the rollout that visited a cell last
  const stateVisitedBy = new Int32Array(level.stateKeys.length).fill(-1);
  const stateSteps = level.stateKeys.map(() => []);
  for (let i = 0; i < group.n; i++) {
    const rollout = group.rolloutOf[i];
    if (group.rollouts[rollout].outcome === null) continue;
    const key = states[i] * level.actionKeys.length + actions[i];
    let cell = index.get(key);
    if (cell === undefined) {
      cell = cells.length;
      index.set(key, cell);
      cells.push({ state: states[i], action: actions[i], steps: [] });
      ofState[states[i]].push(cell);
      visitedBy.push(-1);
    }
    cellOf[i] = cell;
    if (visitedBy[cell] !== rollout) {
      visitedBy[cell] = rollout;
      firstInCell[i] = 1;
      cells[cell].steps.push(i);
    }
    if (stateVisitedBy[states[i]] !== rollout) {
      stateVisitedBy[states[i]] = rollout;
      firstInState[i] = 1;
      stateSteps[states[i]].push(i);
    }
  }
  return { cells, cellOf, ofState, firstInCell, firstInState, stateSteps };
}

function mean(values) {
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : NaN;
}

function deviation(values, sample) {
  const middle = mean(values);
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0);
  return Math.sqrt(squares / (sample ? Math.max(values.length - 1, 1) : values.length));
}

function voters(group) {
  return group.rollouts.map((_, r) => r).filter((r) => group.rollouts[r].outcome !== null);
}

function clip(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

function firstReturns(group, returns) {
  return group.rollouts.map((rollout, r) => (
    group.starts[r] === group.starts[r + 1] ? rollout.outcome : returns[group.starts[r]]));
}

// RTMC: A = Q − V′, with all that it came from. `level` is the chosen one.
function rtmc(group, level, settings) {
  const { n, rolloutOf, time } = group;
  const returns = computeReturns(group, settings.gamma);
  const tree = level.tree || (level.tree = buildTree(group, level));
  const voting = voters(group);
  const outcomes = voting.map((r) => group.rollouts[r].outcome);
  const low = Math.min(...outcomes), high = Math.max(...outcomes);
  const start = firstReturns(group, returns);
  const weight = settings.prior === 'none' ? 0 : settings.n_prior;
  const carried = (value, t) => (value === 0 ? 0 : value * settings.gamma ** -t);
  const cellQ = tree.cells.map((cell) => mean(cell.steps.map((i) => returns[i])));
  const stateTime = tree.stateSteps.map((steps) => mean(steps.map((i) => time[i])));
  const success = mean(outcomes), meanStart = mean(voting.map((r) => start[r]));
  const priorOf = (state) => (settings.prior === 'discounted'
    ? clip(carried(meanStart, stateTime[state]), low, high) : success);
  const states = tree.ofState.map((cells, state) => {
    const visits = cells.reduce((sum, cell) => sum + tree.cells[cell].steps.length, 0);
    const plain = cells.reduce((sum, c) => sum + tree.cells[c].steps.length * cellQ[c], 0) / visits;
    const prior = settings.prior === 'none' ? NaN : priorOf(state);
    const value = settings.prior === 'none'
      ? plain : (visits * plain + weight * prior) / (visits + weight);
    return { visits, plain, prior, value };
  });
  const out = {
    returns, tree, states, cellQ, weight,
    q: new Float64Array(n).fill(NaN), v: new Float64Array(n).fill(NaN),
    raw: new Float64Array(n).fill(NaN),
  };
  const own = settings.leave_one_out ? leaveOneOut(group, level, settings, out, {
    start, outcomes, low, high, carried, stateTime, voting,
  }) : null;
  for (let i = 0; i < n; i++) {
    const cell = tree.cellOf[i];
    if (cell < 0) continue;
    out.q[i] = cellQ[cell];
    out.v[i] = own ? own[i] : states[level.states[i]].value;
    let value = out.q[i] - out.v[i];
    if (Number.isNaN(value)) value = 0;  // no baseline left: nothing to compare with
    if (settings.repeats === 'first' && !tree.firstInCell[i]) value = Math.min(0, value);
    out.raw[i] = value;
  }
  out.advantages = groupRules(group, out.raw, settings, out);
  return out;
}

// V′ without the step's own rollout, of each step.
function leaveOneOut(group, level, settings, found, known) {
  const { returns, tree, weight } = found;
  const { start, outcomes, low, high, carried, stateTime, voting } = known;
  const total = tree.stateSteps.map((steps) => steps.reduce((sum, i) => sum + returns[i], 0));
  const discounted = settings.prior === 'discounted';
  const all = discounted
    ? voting.reduce((sum, r) => sum + start[r], 0) : outcomes.reduce((a, b) => a + b, 0);
  const values = new Float64Array(group.n).fill(NaN);
  const firstStep = new Map();
  for (let i = 0; i < group.n; i++) {
    if (tree.cellOf[i] < 0) continue;
    const r = group.rolloutOf[i], state = level.states[i];
    const key = r * level.stateKeys.length + state;
    if (!firstStep.has(key)) firstStep.set(key, i);
    const ownOutcome = discounted ? start[r] : group.rollouts[r].outcome;
    let others = (all - ownOutcome) / Math.max(voting.length - 1, 1);
    if (discounted) others = clip(carried(others, stateTime[state]), low, high);
    const left = tree.stateSteps[state].length - 1 + weight;
    if (left > 0) {
      values[i] = (total[state] - returns[firstStep.get(key)] + weight * others) / left;
    }
  }
  return values;
}

function scale(values, std) {
  return std === 'none' ? 1 : deviation(values, std === 'sample') + 1e-6;
}

// GRPO: one advantage a rollout.
function grpo(group, level, settings) {
  const outcomes = voters(group).map((r) => group.rollouts[r].outcome);
  const out = { mean: mean(outcomes), scale: scale(outcomes, settings.std || 'population') };
  out.raw = Float64Array.from(group.rolloutOf, (r) => {
    const outcome = group.rollouts[r].outcome;
    return outcome === null ? NaN : (outcome - out.mean) / out.scale;
  });
  out.advantages = groupRules(group, out.raw, settings, out);
  return out;
}

// GRPO with step rewards: the returns of all steps, standardised.
function grpoStep(group, level, settings) {
  const returns = computeReturns(group, settings.gamma);
  const known = Array.from(returns).filter((value) => !Number.isNaN(value));
  const out = { returns, mean: mean(known), scale: scale(known, settings.std || 'population') };
  out.raw = returns.map((value) => (value - out.mean) / out.scale);
  out.advantages = groupRules(group, out.raw, settings, out);
  return out;
}

// What holds for every estimator: uniform groups, steps without credit, normalisation.
function groupRules(group, raw, settings, notes) {
  const outcomes = voters(group).map((r) => group.rollouts[r].outcome);
  const low = Math.min(...outcomes), high = Math.max(...outcomes);
  const size = Math.max(1, ...outcomes.map(Math.abs));
  notes.uniform = outcomes.length > 0 && high - low <= 1e-6 * size;
  const values = raw.map((value, i) => {
    const rollout = group.rollouts[group.rolloutOf[i]];
    if (rollout.outcome === null || !rollout.credited) return NaN;
    return notes.uniform ? 0 : value;
  });
  notes.normaliser = 1;
  if (settings.normalize === 'problem') {
    const spread = deviation(Array.from(values).filter((value) => !Number.isNaN(value)), false);
    if (spread >= 1e-8) notes.normaliser = spread;
  }
  return notes.normaliser === 1 ? values : values.map((value) => value / notes.normaliser);
}

const ESTIMATORS = { rtmc, grpo, grpo_step: grpoStep };
