// Every rollout under every estimator, on one scale of colours.

function compareView(group, selectStep, select) {
  const root = h('div', { class: 'compare' });
  const live = h('p', { class: 'quiet live', role: 'status', 'aria-live': 'polite' });
  let own = false;
  const wanted = new Set(['grpo', 'grpo_step']);
  const order = group.rollouts.map((_, r) => r)
    .sort((a, b) => statusRank(group, -1 - a) - statusRank(group, -1 - b) || a - b);
  const longest = Math.max(1, ...group.rollouts.map((rollout) => rollout.steps));

  function draw() {
    const names = estimatorNames(group);
    const reference = names.includes('grpo') ? 'grpo' : names[0];
    const sorted = [reference, ...names.filter((name) => name !== reference)];
    // GRPO and GRPO+Step first, the chosen estimator last, as in the paper
    const chosen = store.settings.estimator;
    const shown = [...sorted.filter((name) => name !== chosen && name !== 'rtmc' && wanted.has(name)), 'rtmc', chosen]
      .filter((name, at, all) => all.indexOf(name) === at);
    const more = names.filter((name) => name !== chosen && name !== 'rtmc' && name !== reference);
    const rows = shown.map((name) => creditOf(group, name).advantages);
    const sizes = rows.map((row) => largestOf([Array.from(row).filter(isNumber)]));
    const largest = Math.max(...sizes);
    const room = (root.clientWidth || 900) - 150 - 20 * shown.length;
    const cell = clip(Math.floor(2 * room / shown.length / longest) / 2, 2, 20);
    const height = order.length > 30 ? 12 : 18;
    root.classList.toggle('dense', height === 12);
    root.replaceChildren(
      h('div', { class: 'tools' }, own ? null : legend(largest),
        h('span', { class: 'quiet' }, s('svg', { width: 12, height: 12, 'aria-hidden': 'true' },
          s('circle', { cx: 6, cy: 6, r: 3, class: 'dots' })), ` the sign is not that of ${shown[0]} (both beyond ±${THRESHOLD}); hatched: no credit`),
        h('span', { class: 'field' }, h('input', {
          type: 'checkbox', id: 'own-scale', checked: own, onchange: (event) => { own = event.target.checked; draw(); root.querySelector('#own-scale').focus(); },
        }), h('label', { for: 'own-scale' }, 'each on its own scale'))),
      more.length > 1 ? h('fieldset', { class: 'more' }, h('legend', {}, 'Beside it'), more.map((name) => h('span', { class: 'field' },
        h('input', {
          type: 'checkbox', id: `show-${name}`, checked: wanted.has(name), onchange: (event) => {
            if (event.target.checked) wanted.add(name);
            else wanted.delete(name);
            draw();
            root.querySelector(`#show-${name}`).focus();
          },
        }), h('label', { for: `show-${name}` }, name)))) : null,
      live,
      h('div', { class: 'scroll' }, h('div', { class: 'panels' },
        h('div', { class: 'names' }, h('h3', {}, 'Rollout'), h('ul', {}, order.map((r) => h('li', {},
          mark(group.rollouts[r].status), ' ', h('button', {
            type: 'button', class: 'link', onclick: () => select({ rollout: r }),
          }, h('bdi', {}, named(group.rollouts[r].id, 28)))))),
        h('p', { class: 'quiet axis' }, 'step')),
        shown.map((name, at) => panel(name, rows[at], at ? rows[0] : null, own ? sizes[at] : largest, cell, height)))));
  }

  function panel(name, advantages, reference, largest, cell, height) {
    const width = longest * cell + 2;
    const paths = new Map();
    let dots = '', flips = 0;
    order.forEach((r, row) => {
      for (let i = group.starts[r]; i < group.starts[r + 1]; i++) {
        const x = 1 + group.time[i] * cell, y = row * (height + 2) + 1;
        const kind = tone(advantages[i], largest);
        const box = `M${x},${y}h${cell - (cell > 5 ? 1 : 0)}v${height}h-${cell - (cell > 5 ? 1 : 0)}z`;
        paths.set(kind, (paths.get(kind) || '') + box);
        if (reference && advantages[i] * reference[i] < 0
            && Math.abs(advantages[i]) > THRESHOLD && Math.abs(reference[i]) > THRESHOLD) {
          flips += 1;
          const radius = Math.min(2.4, cell / 2.6);
          dots += `M${x + cell / 2 - radius},${y + height / 2}a${radius},${radius} 0 1 0 ${2 * radius},0a${radius},${radius} 0 1 0 -${2 * radius},0z`;
        }
      }
    });
    const cursor = s('rect', { class: 'cursor', width: cell + 1, height: height + 2, x: -100, y: 0 });
    const apart = [5, 10, 20, 50, 100, 200, 500, 1000].find((size) => size * cell > 34) || 2000;
    const ticks = [...Array(Math.ceil(longest / apart)).keys()].map((k) => s('text', {
      x: 1 + k * apart * cell + cell / 2, y: order.length * (height + 2) + 14, class: 'tick', 'text-anchor': 'middle',
    }, k * apart));
    const title = s('title', {});
    const picture = s('svg', {
      width: width + 12, height: order.length * (height + 2) + 18, tabindex: '0', role: 'application',
      'aria-label': `${name}: ${plural(order.length, 'rollout')} by steps${reference ? `, ${flips} signs differ` : ''}. Arrow keys read the cells, Enter opens a step.`,
    }, title, [...paths].map(([kind, d]) => s('path', { d, class: `fill ${kind}` })),
    s('path', { d: dots, class: 'dots' }), ticks, cursor);
    let row = 0, t = -1;
    const say = (i) => `${stepName(group, i)}: ${name} ${signed(advantages[i])}, ${oneLine(shortKey(levelOf(group).actionKeys[levelOf(group).actions[i]]), 80)}`;
    const at = (atRow, atTime) => {
      const r = order[atRow];
      return r !== undefined && atTime >= 0 && atTime < group.rollouts[r].steps ? group.starts[r] + atTime : -1;
    };
    const go = (nextRow, nextTime) => {
      if (!order.length) return;
      let limited = clip(nextRow, 0, order.length - 1);
      const steps = () => group.rollouts[order[limited]].steps;
      while (!steps() && order[limited + Math.sign(nextRow - row)] !== undefined && nextRow !== row) {
        limited += Math.sign(nextRow - row);  // over rollouts without steps
      }
      const i = at(limited, clip(nextTime, 0, Math.max(steps() - 1, 0)));
      if (i < 0) return;
      row = limited;
      t = group.time[i];
      cursor.setAttribute('x', 1 + t * cell - 0.5);
      cursor.setAttribute('y', row * (height + 2));
      live.textContent = say(i);
    };
    const find = (event) => {
      const room = picture.getBoundingClientRect();
      return at(Math.floor((event.clientY - room.top) / (height + 2)), Math.floor((event.clientX - room.left - 1) / cell));
    };
    picture.addEventListener('mousemove', (event) => {
      const i = find(event);
      title.textContent = i < 0 ? '' : say(i);
    });
    picture.addEventListener('click', (event) => {
      const i = find(event);
      if (i >= 0) {
        go(order.indexOf(group.rolloutOf[i]), group.time[i]);
        selectStep(i);
      }
    });
    picture.addEventListener('keydown', (event) => {
      const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      if (event.key in moves) go(row + moves[event.key][0], t + moves[event.key][1]);
      else if (event.key === 'Enter' && at(row, t) >= 0) selectStep(at(row, t));
      else return;
      event.preventDefault();
    });
    return h('div', { class: 'panel' }, h('h3', {}, name,
      reference ? h('span', { class: 'quiet' }, ` ${flips} signs differ`) : null), picture);
  }

  return { root, show: draw, update: draw };
}
