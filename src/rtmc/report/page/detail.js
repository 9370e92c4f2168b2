// What stands beside the pictures: how a number came about, and the raw texts behind it.

function detailView(group, select, tree) {
  const body = h('aside', { class: 'detail', 'aria-label': 'Details' });
  const before = [];  // what was shown, to go back to
  let shown = null;

  function show(selection, goesBack) {
    if (!goesBack && shown !== null && selection !== null) before.push(shown);
    if (selection === null) before.length = 0;
    shown = selection && selection.state !== undefined ? { ...selection, at: stepOf(selection) } : selection;
    draw();
    body.scrollTop = 0;
    if (selection === null) return;
    const heading = body.querySelector('h2');
    heading.setAttribute('tabindex', '-1');
    heading.focus({ preventScroll: true });
    // under the picture on narrow screens
    if (getComputedStyle(body).position === 'static') body.scrollIntoView({ block: 'nearest' });
  }

  function stepOf({ state, action }) {
    const level = levelOf(group);
    return level.states.findIndex((one, i) => one === state && (action === undefined || level.actions[i] === action));
  }

  function draw() {
    const view = !shown ? partingsView(group, select)
      : shown.chain ? chainView(group, shown.chain, select, tree)
        : shown.action !== undefined ? cellView(group, shown.state, shown.action, select)
          : shown.state !== undefined ? stateView(group, shown.state, select)
            : rolloutView(group, shown.rollout, select);
    body.replaceChildren(shown ? h('p', { class: 'back' },
      before.length ? h('button', { type: 'button', onclick: () => select(before.pop(), true) }, '← Back') : null,
      h('button', { type: 'button', onclick: () => select(null) }, '← Where they part')) : '', view);
  }

  // At another level the same step has another state and action.
  function update(changed) {
    if (changed && 'level' in changed && shown && shown.rollout === undefined) {
      before.length = 0;
      const level = levelOf(group);
      const { at } = shown;
      shown = null;
      select(at === undefined ? null : { state: level.states[at], action: level.actions[at] });
      return;
    }
    draw();
  }

  return { root: body, show, update };
}

function keyText(text) {
  return h('code', { class: 'key', dir: 'ltr' }, breakable(shortKey(text)));
}

function cellLink(group, level, state, action, select, text) {
  return h('button', {
    type: 'button', class: 'link', onclick: () => select({ state, action }),
  }, breakable(text || shortKey(level.actionKeys[action], 90)));
}

// --- one action in one state -------------------------------------------------------------------

function cellView(group, state, action, select) {
  const level = levelOf(group);
  const steps = [];
  for (let i = 0; i < group.n; i++) {
    if (level.states[i] === state && level.actions[i] === action) steps.push(i);
  }
  const rollouts = distinct(group, steps);
  return h('div', {},
    h('h2', {}, keyText(level.actionKeys[action])),
    h('p', { class: 'quiet' }, `taken by ${plural(rollouts.size, 'rollout')} (${tally(group, rollouts)}) in the state`),
    h('p', {}, keyText(level.stateKeys[state])),
    arithmetic(group, level, state, action, steps, select),
    h('h3', {}, 'What was thought, done and seen'),
    steps.map((i, at) => rawView(group, i, at === 0)));
}

function arithmetic(group, level, state, action, steps, select) {
  const name = store.settings.estimator;
  const found = creditOf(group, name);
  if (found.uniform) {
    return h('p', { class: 'note' },
      'Every rollout that counts had the same outcome: there is nothing to tell apart, A = 0.');
  }
  if (!steps.some((i) => isNumber(group.rewards[i]))) {
    return h('p', { class: 'note' },
      'No rollout here has an outcome that counts, so no credit was assigned.');
  }
  const parts = name === 'rtmc' ? rtmcArithmetic(group, level, state, action, found, select)
    : name === 'grpo' || name === 'grpo_step' ? groupArithmetic(group, name, found)
      : [h('p', { class: 'note' }, `${name} was computed when the report was written.`)];
  return h('section', { class: 'arithmetic', 'aria-label': 'How the number came about' },
    h('h3', {}, 'How the number came about'), parts, stepTable(group, steps, found, name));
}

function line(left, ...right) {
  return h('div', { class: 'line' }, h('span', { class: 'left' }, left), h('span', {}, right));
}

function rtmcArithmetic(group, level, state, action, found, select) {
  const { settings } = store;
  const { tree, states, cellQ, weight } = found;
  const cells = tree.ofState[state];
  const cell = cells.find((c) => tree.cells[c].action === action);
  const here = states[state];
  const count = tree.cells[cell].steps.length;
  const q = cellQ[cell];
  const lines = [
    line('N(s,a)', `${count} of N(s) = ${here.visits} (a rollout counts once for each different action)`),
    line('Q(s,a)', `mean return at the first visit = ${number(q, 4)}`),
    line('V(s)', `Σ N(s,a)·Q(s,a) / N(s) = ${number(here.plain, 4)}`),
  ];
  const value = settings.leave_one_out ? null : here.value;
  if (settings.leave_one_out) {
    lines.push(line('V′', 'without the rollout’s own return: see the table'));
  } else if (settings.prior !== 'none') {
    const share = weight / (here.visits + weight);
    lines.push(
      line('prior p', `${number(here.prior, 4)}, ${settings.prior === 'discounted'
        ? 'mean start value carried to this depth' : 'success rate of the group'}; `
        + `weight ${weight} of ${number(here.visits + weight, weight % 1 ? 2 : 0)} = ${(100 * share).toFixed(0)} %`),
      line('V′(s)', `(${here.visits}·${number(here.plain, 4)} + ${weight}·${number(here.prior, 4)}) / `
        + `(${here.visits} + ${weight}) = ${number(value, 4)}`));
  }
  if (value !== null) {
    lines.push(line('A', h('strong', {}, `${number(q, 4)} − ${number(value, 4)} = ${signed(q - value, 4)}`)));
  }
  if (found.normaliser !== 1) {
    lines.push(line('normaliser', `÷ ${number(found.normaliser, 4)}, the deviation of the problem’s advantages`
      + (value === null ? '' : ` → ${signed((q - value) / found.normaliser, 4)}`)));
  }
  const others = cells.length > 1 ? h('div', {},
    h('h4', {}, 'All actions in this state'),
    h('table', {}, h('thead', {}, h('tr', {}, ['action', 'N', 'Q', 'A'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, [...cells].sort((a, b) => cellQ[b] - cellQ[a]).map((c) => h('tr', { class: c === cell ? 'this' : '' },
        h('td', {}, cellLink(group, level, state, tree.cells[c].action, select)),
        h('td', {}, tree.cells[c].steps.length),
        h('td', {}, number(cellQ[c])),
        h('td', {}, signed(isNumber(value) ? (cellQ[c] - value) / found.normaliser : NaN))))))) : null;
  return [lines, others];
}

function groupArithmetic(group, name, found) {
  const what = name === 'grpo' ? 'outcomes R of the rollouts' : 'returns G of all steps';
  const sign = name === 'grpo' ? 'R' : 'G';
  return [
    line('mean', `${number(found.mean, 4)}, over the ${what}`),
    line('divisor', store.settings.std === 'none' ? '1' : `${number(found.scale, 4)}, their deviation + 1e-6`),
    line('A', `(${sign} − ${number(found.mean, 4)}) / ${number(found.scale, 4)}`),
    found.normaliser !== 1 ? line('normaliser', `÷ ${number(found.normaliser, 4)}`) : null,
  ];
}

function stepTable(group, steps, found, name) {
  const isRtmc = name === 'rtmc';
  const heads = ['rollout', 't', 'return G', ...(isRtmc && store.settings.leave_one_out ? ['V′'] : []), 'A'];
  const note = (i) => {
    if (!isRtmc || found.tree.cellOf[i] < 0 || found.tree.firstInCell[i]) return '';
    return store.settings.repeats === 'first' ? ' repeat: min(0, A)' : ' repeat';
  };
  const returns = found.returns || computeReturns(group, store.settings.gamma);
  return h('table', {}, h('caption', {}, 'The steps behind it'),
    h('thead', {}, h('tr', {}, heads.map((head) => h('th', { scope: 'col' }, head)))),
    h('tbody', {}, steps.map((i) => h('tr', {},
      h('td', {}, mark(group.rollouts[group.rolloutOf[i]].status), ' ',
        h('bdi', {}, named(group.rollouts[group.rolloutOf[i]].id, 40))),
      h('td', {}, group.time[i]),
      h('td', {}, number(returns[i], 4)),
      isRtmc && store.settings.leave_one_out ? h('td', {}, number(found.v[i], 4)) : null,
      h('td', {}, signed(found.advantages[i], 4), note(i))))));
}

// --- raw texts ---------------------------------------------------------------------------------

const SHOWN = 6000;

function rawView(group, i, isOpen) {
  const box = h('details', { class: 'raw', ontoggle: () => { if (box.open && box.childElementCount === 1) load(); } },
    h('summary', {}, mark(group.rollouts[group.rolloutOf[i]].status), ' ', stepName(group, i)));
  function load() { box.append(...rawTexts(group, i)); }
  if (isOpen) {
    box.open = true;
    load();
  }
  return box;
}

function rawTexts(group, i) {
  const text = group.texts && group.texts[i];
  if (!text) {
    return [h('p', { class: 'quiet' }, 'The raw texts are not in a credited file: make the report from the rollouts to see them.')];
  }
  const out = [];
  if (text.thought) out.push(h('h4', {}, 'Thought'), pre(text.thought));
  for (const call of text.calls) {
    const how = [call.exit !== undefined ? `exit code ${call.exit}` : null,
      call.error ? 'error' : null, call.timeout ? 'timed out' : null].filter(Boolean).join(', ');
    out.push(h('h4', {}, 'Call ', h('code', {}, oneLine(call.name, 60))), pre(argumentsText(call.arguments)),
      h('h4', {}, 'Observation', how ? h('span', { class: 'quiet' }, ` ${how}`) : null),
      call.output === undefined ? h('p', { class: 'quiet' }, 'none recorded') : pre(call.output));
  }
  if (!out.length) out.push(h('p', { class: 'quiet' }, 'nothing was recorded'));
  return out;
}

function argumentsText(value) {
  if (value === null || typeof value !== 'object') return String(value);
  const entries = Object.entries(value);
  const text = (item) => (typeof item === 'string' ? item : JSON.stringify(item, null, 1));
  if (entries.length === 1) return text(entries[0][1]);
  return entries.map(([name, item]) => `${name}: ${text(item)}`).join('\n');
}

// A long text is cut; the rest comes on demand.
function pre(text) {
  const box = h('pre', { dir: 'ltr', tabindex: '0' });
  const whole = visible(text);
  if (whole.length <= SHOWN) {
    box.append(whole);
    return box;
  }
  box.append(whole.slice(0, SHOWN));
  const more = h('button', {
    type: 'button', onclick: () => { box.replaceChildren(whole); },
  }, `show ${whole.length - SHOWN} more characters`);
  return h('div', {}, box, more);
}

// --- a chain, a state, a rollout ---------------------------------------------------------------

function chainView(group, chain, select, tree) {
  const level = levelOf(group);
  const steps = chainSteps(group, chain);
  const first = chain.states[0];
  const only = chain.rollouts.size === 1 ? group.rollouts[[...chain.rollouts][0]] : null;
  const toggle = h('button', {
    type: 'button', onclick: () => {
      tree.toggle(first);
      toggle.textContent = tree.isOpen(first) ? 'Fold in the tree' : 'Unfold in the tree';
    },
  }, tree.isOpen(first) ? 'Fold in the tree' : 'Unfold in the tree');
  return h('div', {},
    h('h2', {}, `${plural(steps.length, 'step')} in which nothing parts`),
    h('p', { class: 'quiet' }, only ? [mark(only.status), ' ', h('bdi', {}, named(only.id, 80))]
      : `${plural(chain.rollouts.size, 'rollout')}: ${tally(group, chain.rollouts)}`),
    h('p', {}, toggle),
    h('ol', { class: 'steps', start: only ? group.time[steps[0].at[0]] : 1 }, steps.map(({ at }) => h('li', {},
      h('span', { class: 'value' }, signed(worth(group, at).value)), ' ',
      cellLink(group, level, level.states[at[0]], level.actions[at[0]], select)))));
}

// What was done in each state: state → action → steps.
function doneIn(group, level) {
  const states = new Map();
  for (let i = 0; i < group.n; i++) {
    const state = level.states[i], action = level.actions[i];
    if (!states.has(state)) states.set(state, new Map());
    const actions = states.get(state);
    if (!actions.has(action)) actions.set(action, []);
    actions.get(action).push(i);
  }
  return states;
}

function actionRows(group, actions) {
  return [...actions].map(([action, steps]) => (
    { action, steps, rollouts: distinct(group, steps), a: worth(group, steps).value }))
    .sort((a, b) => b.rollouts.size - a.rollouts.size);
}

function stateView(group, state, select) {
  const level = levelOf(group);
  const rows = actionRows(group, doneIn(group, level).get(state));
  return h('div', {},
    h('h2', {}, 'State'), h('p', {}, keyText(level.stateKeys[state])),
    h('p', { class: 'quiet' }, `reached by ${plural(distinct(group, rows.flatMap((row) => row.steps)).size, 'rollout')}; `
      + 'a rollout can appear under several actions'),
    h('table', {}, h('thead', {}, h('tr', {}, ['action', 'rollouts', 'A'].map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map(({ action, rollouts, a }) => h('tr', {},
        h('td', {}, cellLink(group, level, state, action, select)),
        h('td', {}, `${rollouts.size} (${tally(group, rollouts)})`),
        h('td', {}, signed(a)))))));
}

function rolloutView(group, r, select) {
  const level = levelOf(group);
  const rollout = group.rollouts[r];
  const { advantages } = creditOf(group, store.settings.estimator);
  const steps = [];
  for (let i = group.starts[r]; i < group.starts[r + 1]; i++) steps.push(i);
  const facts = [['outcome', rollout.reward ?? 'unknown'], ['status', rollout.status],
    ['stopped', rollout.stop], ['model', rollout.model], ['flags', rollout.flags.join(', ')],
    ['from', rollout.source]].filter(([, value]) => value !== null && value !== '');
  return h('div', {},
    h('h2', {}, mark(rollout.status), ' ', h('bdi', {}, named(rollout.id, 120))),
    h('dl', { class: 'facts' }, facts.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, oneLine(value, 200))))),
    h('ol', { class: 'steps', start: '0' }, steps.map((i) => h('li', {},
      h('span', { class: 'value' }, signed(advantages[i])), ' ',
      cellLink(group, level, level.states[i], level.actions[i], select)))));
}

// --- nothing chosen: where rollouts part, and what repeats --------------------------------------

// States in which not all rollouts did the same; those with most at stake first, where anything is.
function partings(group, level) {
  const found = [];
  for (const [state, actions] of doneIn(group, level)) {
    const done = new Map();
    for (const [action, steps] of actions) {
      for (const r of distinct(group, steps)) done.set(r, `${done.get(r) || ''} ${action}`);
    }
    if (new Set([...done.values()].map((set) => set.split(' ').sort().join(' '))).size < 2) continue;
    const rows = actionRows(group, actions);
    const values = rows.map((row) => row.a).filter(isNumber);
    const stake = values.length ? (Math.max(...values) - Math.min(...values)) * done.size : 0;
    const first = Math.min(...rows.flatMap((row) => row.steps).map((i) => group.time[i] * group.n + i));
    found.push({ state, rows, rollouts: done.size, stake, first: first % group.n });
  }
  return found.sort((a, b) => b.stake - a.stake || b.rollouts - a.rollouts || a.state - b.state);
}

function placeOf(group, level, i) {
  return group.time[i] ? `At step ${group.time[i]}, after ${shortKey(level.actionKeys[level.actions[i - 1]], 70)}`
    : 'At the start';
}

function repeatsIn(group, level) {
  const seen = new Set(), repeats = new Map();
  for (let i = 0; i < group.n; i++) {
    const cell = `${level.states[i]} ${level.actions[i]}`;
    const own = `${cell} ${group.rolloutOf[i]}`;
    if (seen.has(own)) {
      if (!repeats.has(cell)) repeats.set(cell, { state: level.states[i], action: level.actions[i], steps: [] });
      repeats.get(cell).steps.push(i);
    }
    seen.add(own);
  }
  return [...repeats.values()].sort((a, b) => b.steps.length - a.steps.length);
}

function partingsView(group, select) {
  const level = levelOf(group);
  const found = partings(group, level);
  const repeated = repeatsIn(group, level);
  const order = found.some(({ stake }) => stake > 0) ? 'those with most at stake first' : 'the most visited first';
  return h('div', {},
    h('h2', {}, 'Where they part'),
    h('p', { class: 'quiet' }, found.length
      ? `${plural(found.length, 'state')} in which not all rollouts did the same, ${order}. A rollout can appear under several actions.`
      : 'In no state did rollouts do different things.'),
    found.slice(0, 8).map(({ state, rows, rollouts, first }) => h('section', { class: 'parting' },
      h('h3', {}, h('button', { type: 'button', class: 'link', onclick: () => select({ state }) },
        breakable(placeOf(group, level, first))), h('span', { class: 'quiet' }, ` ${plural(rollouts, 'rollout')}`)),
      h('p', { class: 'small' }, keyText(level.stateKeys[state])),
      h('ul', { class: 'plain' }, rows.slice(0, 8).map((row) => h('li', {},
        h('span', { class: 'value' }, signed(row.a, 2)), ' ',
        cellLink(group, level, state, row.action, select), h('span', { class: 'quiet' }, ` ${tally(group, row.rollouts)}`)))),
      rows.length > 8 ? h('p', { class: 'quiet' }, `and ${rows.length - 8} more`) : null)),
    found.length > 8 ? h('p', { class: 'quiet' }, `and ${plural(found.length - 8, 'state')} more, in the tree`) : null,
    h('h2', {}, 'What repeats'),
    repeated.length ? h('ul', { class: 'plain' }, repeated.slice(0, 8).map(({ state, action, steps }) => h('li', {},
      `${steps.length} × `, cellLink(group, level, state, action, select),
      h('span', { class: 'quiet' }, ` again in the same state, by ${plural(distinct(group, steps).size, 'rollout')}`))))
      : h('p', { class: 'quiet' }, 'No rollout took the same action twice in the same state.'));
}
