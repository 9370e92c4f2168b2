// In which quadrant each step lies against a reference estimator, |A| > 0.01.

const QUADRANTS = ['both +', 'both −', 'rescued', 'penalised', 'neutral'];
const THRESHOLD = 0.01;

function quadrantOf(value, reference) {
  if (Number.isNaN(value) || Number.isNaN(reference)) return null;
  const plus = value > THRESHOLD, minus = value < -THRESHOLD;
  const refPlus = reference > THRESHOLD, refMinus = reference < -THRESHOLD;
  if (plus && refPlus) return 'both +';
  if (minus && refMinus) return 'both −';
  if (plus && refMinus) return 'rescued';
  if (minus && refPlus) return 'penalised';
  return 'neutral';
}

function quadrantsView(group, selectStep) {
  const names = estimatorNames(group);
  const root = h('div', { class: 'quadrants' });
  let reference = names.includes('grpo_step') ? 'grpo_step' : names[0];
  let chosen = null;

  function draw() {
    const name = store.settings.estimator;
    if (reference === name) reference = names.find((other) => other !== name);
    const values = creditOf(group, name).advantages;
    const against = creditOf(group, reference).advantages;
    const steps = { passing: {}, failing: {} };
    for (const of of Object.values(steps)) QUADRANTS.forEach((quadrant) => { of[quadrant] = []; });
    for (let i = 0; i < group.n; i++) {
      const quadrant = quadrantOf(values[i], against[i]);
      if (!quadrant) continue;
      const won = group.rollouts[group.rolloutOf[i]].status === 'passed';
      steps[won ? 'passing' : 'failing'][quadrant].push(i);
    }
    const choice = h('select', {
      id: 'reference', onchange: (event) => { reference = event.target.value; draw(); },
    }, names.filter((other) => other !== name).map((other) => (
      h('option', { value: other, selected: other === reference }, other))));
    const list = h('div', { class: 'quadrant-steps', 'aria-live': 'polite' });
    const openList = (of, quadrant) => {
      chosen = [of, quadrant];
      list.replaceChildren(listView(of, quadrant, steps[of][quadrant], values, against, name));
    };
    root.replaceChildren(
      h('div', { class: 'tools' }, h('label', { for: 'reference' }, `${name} against`), choice,
        h('span', { class: 'quiet' }, `a sign counts from |A| > ${THRESHOLD}`)),
      h('p', { class: 'quiet' }, `rescued: ${reference} −, ${name} +. penalised: ${reference} +, ${name} −. neutral: within ±${THRESHOLD} under either.`),
      h('div', { class: 'scroll' }, h('table', { class: 'quadrant-table' },
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Steps of'), QUADRANTS.map((quadrant) => h('th', { scope: 'col' }, quadrant)), h('th', { scope: 'col' }, 'all'))),
        h('tbody', {}, Object.entries(steps).map(([of, found]) => {
          const all = QUADRANTS.reduce((sum, quadrant) => sum + found[quadrant].length, 0);
          return h('tr', {}, h('th', { scope: 'row' }, `${of} rollouts`),
            QUADRANTS.map((quadrant) => h('td', {}, h('button', {
              type: 'button', class: 'link', disabled: !found[quadrant].length,
              'aria-label': `${found[quadrant].length} steps of ${of} rollouts, ${quadrant}`,
              onclick: () => openList(of, quadrant),
            }, found[quadrant].length), h('span', { class: 'quiet' }, ` ${percent(found[quadrant].length, all)}`))),
            h('td', {}, all));
        })))),
      h('div', { class: 'bars' }, Object.entries(steps).map(([of, found]) => barView(of, found))),
      list);
    if (chosen) openList(...chosen);
    if (!group.rewards.some(isNumber)) {
      root.replaceChildren(h('p', { class: 'note' }, 'No rollout of this group has an outcome that counts, so no step has credit to compare.'));
    }
  }

  function barView(of, found) {
    const all = QUADRANTS.reduce((sum, quadrant) => sum + found[quadrant].length, 0);
    let x = 0;
    const parts = QUADRANTS.map((quadrant, at) => {
      const width = all ? 600 * found[quadrant].length / all : 0;
      const from = x;
      x += width;
      return [
        s('rect', { x: from, y: 0, width: Math.max(width - 1, 0), height: 24, class: `quadrant q-${at}` },
          s('title', {}, `${quadrant}: ${found[quadrant].length}`)),
        width > 56 ? s('text', { x: from + width / 2, y: 16, 'text-anchor': 'middle', class: `q-text q-${at}` }, quadrant) : null,
      ];
    });
    return h('figure', {}, h('figcaption', {}, `${of} rollouts, ${plural(all, 'step')}`),
      s('svg', { viewBox: '0 0 600 24', class: 'bar', 'aria-hidden': 'true' }, parts));
  }

  function listView(of, quadrant, steps, values, against, name) {
    const level = levelOf(group);
    return h('section', {}, h('h3', {}, `${quadrant}, ${of} rollouts: ${plural(steps.length, 'step')}`),
      h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, ['step', 'action', name, reference].map((head) => h('th', { scope: 'col' }, head)))),
        h('tbody', {}, steps.slice(0, 400).map((i) => h('tr', {},
          h('td', {}, h('button', { type: 'button', class: 'link', onclick: () => selectStep(i) }, stepName(group, i))),
          h('td', {}, h('code', {}, shortKey(level.actionKeys[level.actions[i]], 90))),
          h('td', {}, signed(values[i])), h('td', {}, signed(against[i]))))))),
      steps.length > 400 ? h('p', { class: 'quiet' }, `and ${steps.length - 400} more`) : null);
  }

  return { root, show: draw, update: draw };
}
