// Why two steps were merged, or why not: their keys side by side at every level.

function keysView(group) {
  const root = h('div', { class: 'keys' });
  const chosen = firstPair(group);

  function draw() {
    if (!group.n) {
      root.replaceChildren(h('p', { class: 'note' }, 'No rollout of this group has a step to compare.'));
      return;
    }
    root.replaceChildren(
      h('div', { class: 'pickers' }, [0, 1].map((side) => picker(side))),
      verdict(), table(),
      h('h3', {}, 'Raw texts'),
      h('div', { class: 'sides' }, chosen.map((i) => h('div', {}, h('h4', {}, stepName(group, i)), rawTexts(group, i)))));
  }

  function picker(side) {
    const r = group.rolloutOf[chosen[side]];
    const rollout = h('select', {
      id: `pick-rollout-${side}`, onchange: (event) => {
        const next = Number(event.target.value);
        chosen[side] = group.starts[next] + Math.min(group.time[chosen[side]], group.rollouts[next].steps - 1);
        draw();
        root.querySelector(`#pick-rollout-${side}`).focus();
      },
    }, group.rollouts.map((one, at) => (one.steps ? h('option', { value: at, selected: at === r },
      `${MARKS[one.status]} ${named(one.id, 50)}`) : null)));
    const level = levelOf(group);
    const step = h('select', {
      id: `pick-step-${side}`, onchange: (event) => {
        chosen[side] = Number(event.target.value);
        draw();
        root.querySelector(`#pick-step-${side}`).focus();
      },
    }, [...Array(group.rollouts[r].steps).keys()].map((t) => h('option', {
      value: group.starts[r] + t, selected: group.starts[r] + t === chosen[side],
    }, `${t}  ${shortKey(level.actionKeys[level.actions[group.starts[r] + t]], 60)}`)));
    return h('fieldset', {}, h('legend', {}, side ? 'and' : 'Compare'),
      h('label', { for: `pick-rollout-${side}` }, 'Rollout'), rollout,
      h('label', { for: `pick-step-${side}` }, 'Step'), step);
  }

  function verdict() {
    const [a, b] = chosen;
    const level = levelOf(group);
    const sameState = level.states[a] === level.states[b];
    const sameAction = level.actions[a] === level.actions[b];
    const text = sameState && sameAction ? 'the same edge: same state, same action'
      : sameState ? 'the same node, different actions: this is where they part'
        : sameAction ? 'not merged: the same action in different states' : 'not merged: different states, different actions';
    return h('p', { class: `note ${sameState ? 'same' : ''}`, role: 'status' }, `At level ${level.name}: ${text}.`);
  }

  function table() {
    const [a, b] = chosen;
    const rows = group.levels.filter((level) => level.name !== 'root').flatMap((level) => [
      ['state', level.stateKeys[level.states[a]], level.stateKeys[level.states[b]], level.name],
      ['action', level.actionKeys[level.actions[a]], level.actionKeys[level.actions[b]], level.name],
    ]);
    return h('div', { class: 'scroll' }, h('table', { class: 'key-table' },
      h('thead', {}, h('tr', {}, ['level', 'key', '', stepName(group, a), stepName(group, b)].map((head) => h('th', { scope: 'col' }, head)))),
      h('tbody', {}, rows.map(([what, one, other, level]) => h('tr', {},
        h('th', { scope: 'row' }, level), h('td', {}, what),
        h('td', { class: one === other ? 'equal' : 'unequal' }, one === other ? '= equal' : '≠ differs'),
        h('td', {}, marked(one, other)), h('td', {}, marked(other, one)))))));
  }

  return {
    root,
    show: draw,
    update: draw,
    // Take a step from another view.
    pick(i) {
      chosen[0] = i;
      if (group.rolloutOf[chosen[1]] === group.rolloutOf[i]) chosen[1] = partner(group, i);
      draw();
    },
  };
}

// The parts of a key that the other key has not are marked.
function marked(key, other) {
  const parts = (text) => text.split(/(\s\+\s|[|,()]|\s\/\s)/);
  const theirs = new Map();
  for (const file of other.split('|')) {
    for (const part of keyParts(file)) theirs.set(part, true);
  }
  const out = [];
  for (const [at, file] of key.split('|').entries()) {
    if (at) out.push('|');
    const name = fileOf(file);
    for (const part of parts(file)) {
      const bare = part.trim();
      const isKnown = !/[^\s|,()+/]/.test(bare) || theirs.has(scoped(name, bare));
      out.push(isKnown ? shortKey(part) : h('mark', {}, shortKey(part)));
    }
  }
  return h('code', { class: 'key', dir: 'ltr' }, out);
}

function fileOf(text) {
  const at = text.indexOf(':');
  return at > 0 && !text.startsWith('(') ? text.slice(0, at) : '';
}

function scoped(name, part) {
  return `${name}\n${part.startsWith(`${name}:`) ? part.slice(name.length + 1) : part}`;
}

function keyParts(file) {
  const name = fileOf(file);
  return file.split(/\s\+\s|[|,()]|\s\/\s/).map((part) => scoped(name, part.trim()));
}

function partner(group, i) {
  const r = group.rolloutOf[i];
  const other = group.rollouts.findIndex((rollout, at) => at !== r && rollout.steps > 0);
  return other < 0 ? i : group.starts[other] + Math.min(group.time[i], group.rollouts[other].steps - 1);
}

// Two steps of different rollouts in one state that do different things, if there are any.
function firstPair(group) {
  const level = levelOf(group);
  const seen = new Map();
  for (let i = 0; i < group.n; i++) {
    const known = seen.get(level.states[i]);
    if (known === undefined) seen.set(level.states[i], i);
    else if (group.rolloutOf[known] !== group.rolloutOf[i] && level.actions[known] !== level.actions[i]) return [known, i];
  }
  return [0, partner(group, 0)];
}
