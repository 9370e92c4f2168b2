// The tree: a group merged by state, root left, coloured by advantage.

const COLUMN = 216, ROW = 34, BEND = 40, MARGIN = 26;

function edgeCredit(group, steps, advantages) {
  const values = steps.map((i) => advantages[i]).filter((value) => !Number.isNaN(value));
  return { value: values.length ? mean(values) : NaN, differ: new Set(values).size > 1 };
}

function tally(group, rollouts) {
  const count = {};
  for (const r of rollouts) {
    const { status } = group.rollouts[r];
    count[status] = (count[status] || 0) + 1;
  }
  return Object.entries(count).map(([status, n]) => `${n} ${status}`).join(', ');
}

function treeView(group, select) {
  const view = { picked: null, unfolded: new Set(), zoom: 1, x: 0, y: 0, moved: false };
  const level = () => levelOf(group);
  const canvas = s('svg', {
    class: 'tree', role: 'application', tabindex: '0',
    'aria-label': 'Tree of states and actions. Arrow keys go from edge to edge, Enter opens one, '
      + 'plus and minus zoom, 0 fits, shift and arrow keys move the picture.',
  });
  const scene = s('g', {});
  canvas.append(scene);
  const status = h('p', { class: 'quiet', role: 'status', 'aria-live': 'polite' });
  const key = h('span', {});
  let drawn = null, items = [], focus = -1, chosen = null;

  function draw() {
    drawn = layOut(group, level(), view.unfolded);
    items = [];
    focus = -1;
    const lines = [], labels = [], points = [];
    const X = (column) => MARGIN + column * COLUMN;
    const Y = (row) => MARGIN + row * ROW;
    const bundles = new Map();
    const place = (id) => [X(drawn.column.get(id)), Y(drawn.row.get(id))];
    for (const edge of drawn.edges) {
      const [x1, y1] = place(edge.from);
      const [x2, target] = place(edge.to);
      const bundle = `${edge.from}>${edge.to}`;
      const nth = bundles.get(bundle) || 0;
      bundles.set(bundle, nth + 1);
      const y2 = target + (ROW / 2) * nth;
      const isTree = drawn.isTree(edge);
      const width = 1.4 + 1.5 * Math.sqrt(edge.rollouts.size);
      const end = x2 - (edge.to < 0 ? 8 : 6);
      const bend = isTree
        ? `M${x1},${y1}C${x1 + BEND * 0.6},${y1} ${x1 + BEND * 0.3},${y2} ${x1 + BEND},${y2}`
        : `M${x1},${y1}C${x1 + COLUMN * 0.6},${y1} ${x2 - COLUMN * 0.6},${y2 + ROW * 0.4} ${x2},${target}`;
      const tail = nth ? `L${end - 10},${y2}L${end},${target}` : `L${end},${y2}`;
      const line = s('path', {
        d: isTree && !edge.chain ? bend + tail : bend,
        class: `edge ${isTree ? '' : 'again'}`, 'stroke-width': width.toFixed(2),
      });
      const hit = s('path', { d: isTree ? bend + tail : bend, class: 'hit' });
      const strip = edge.chain ? stripOf(edge, x1 + BEND, end, y2, width) : [];
      const badge = edge.to >= 0 && drawn.nodes.get(edge.to).stays.length ? 3 : 0;
      const text = isTree ? s('text', { x: x1 + BEND + 2, y: y2 - width / 2 - 4, class: 'label' }) : null;
      const item = {
        edge, line, strip, text, room: Math.floor((end - x1 - BEND) / 6.3) - badge,
        column: drawn.column.get(edge.to), row: drawn.row.get(edge.to) + nth / 10,
      };
      item.node = s('g', {
        class: 'item', tabindex: '-1', role: 'button',
        onclick: () => { if (!view.moved) open(item); },
        onfocus: () => { focus = items.indexOf(item); },
      }, line, strip.map((part) => part.node), hit, text);
      items.push(item);
      lines.push(item.node);
    }
    for (const state of drawn.order.keys()) {
      const [x, y] = place(state);
      const stays = drawn.nodes.get(state).stays;
      points.push(s('circle', {
        cx: x, cy: y, r: 5, class: 'state', onclick: () => { if (!view.moved) select({ state }); },
      }, s('title', {}, shortKey(level().stateKeys[state], 400))));
      if (stays.length) {
        points.push(s('text', {
          x, y: y - 9, class: 'stays', 'text-anchor': 'middle',
          onclick: () => { if (!view.moved) select({ state }); },
        }, `↻${stays.length}`, s('title', {}, `${plural(stays.length, 'step')} here that leave the state as it is`)));
      }
    }
    group.rollouts.forEach((rollout, r) => {
      if (!drawn.row.has(-1 - r)) return;
      const [x, y] = place(-1 - r);
      points.push(s('text', { x, y: y + 4.5, class: `end ${rollout.status}`, 'text-anchor': 'middle' },
        MARKS[rollout.status], s('title', {}, rollout.status)));
      labels.push(s('text', { x: x + 12, y: y + 4, class: 'name', 'data-rollout': r },
        oneLine(rollout.id, 36)));
    });
    items.sort((a, b) => a.column - b.column || a.row - b.row);
    scene.replaceChildren(...lines, ...points, ...labels);
    if (items.length) items[0].node.setAttribute('tabindex', '0');
    paint();
    const note = group.n ? `${plural(drawn.order.size, 'state')} and ${plural(drawn.edges.length, 'edge')} drawn`
      : 'No rollout of this group has a step.';
    status.textContent = note;
  }

  function stripOf(edge, from, to, y, width) {
    const steps = chainSteps(group, edge);
    const each = (to - from) / steps.length;
    return steps.map(({ at }, k) => ({
      at,
      node: s('rect', {
        x: (from + k * each).toFixed(2), y: (y - width / 2 - 1).toFixed(2),
        width: Math.max(each - (each > 3 ? 0.8 : 0), 0.6).toFixed(2), height: (width + 2).toFixed(2),
      }),
    }));
  }

  // Colours and numbers, which change with the settings; the picture stays.
  function paint() {
    const { advantages } = creditOf(group, store.settings.estimator);
    const largest = largestOf([Array.from(advantages).filter((value) => !Number.isNaN(value))]);
    for (const item of items) {
      const { edge } = item;
      const found = edgeCredit(group, edge.steps, advantages);
      const lit = view.picked === null || edge.rollouts.has(view.picked);
      item.line.setAttribute('class',
        `edge line-tone ${drawn.isTree(edge) ? '' : 'again'} ${tone(found.value, largest)}`);
      item.node.setAttribute('class', `item ${lit ? '' : 'dim'} ${view.picked !== null && lit ? 'lit' : ''} ${item === chosen ? 'chosen' : ''}`);
      for (const part of item.strip) {
        part.node.setAttribute('class', `fill ${tone(edgeCredit(group, part.at, advantages).value, largest)}`);
      }
      const name = edge.chain
        ? `${plural(item.strip.length, 'step')}`
        : level().actionKeys[level().actions[edge.steps[0]]];
      const worth = isNumber(found.value) && largest > 0
        ? `${found.differ ? '~' : ''}${signed(found.value, 2)}` : `×${edge.rollouts.size}`;
      if (item.text) item.text.textContent = `${worth} ${shortAction(name, item.room - worth.length - 1)}`;
      item.node.setAttribute('aria-label', `${edge.chain ? 'Folded chain of ' : ''}${shortKey(name, 120)}, taken by `
        + `${plural(edge.rollouts.size, 'rollout')} (${tally(group, edge.rollouts)}), `
        + `advantage ${isNumber(found.value) ? signed(found.value) : 'none'}`);
    }
    scene.querySelectorAll('[data-rollout]').forEach((name) => name.classList.toggle(
      'dim', view.picked !== null && Number(name.getAttribute('data-rollout')) !== view.picked));
    key.replaceChildren(legend(largest));
  }

  function open(item) {
    const { edge } = item;
    chosen = item;
    items.forEach((other) => other.node.classList.toggle('chosen', other === item));
    if (edge.chain) {
      select({ chain: edge, unfold: () => unfold(edge.states[0]) });
    } else select({ state: edge.from, action: level().actions[edge.steps[0]] });
  }

  function unfold(state) {
    if (view.unfolded !== 'all') view.unfolded.add(state);
    draw();
  }

  function move() {
    scene.setAttribute('transform', `translate(${view.x.toFixed(1)},${view.y.toFixed(1)}) scale(${view.zoom.toFixed(4)})`);
  }

  function zoomTo(zoom, cx, cy) {
    const next = clip(zoom, 0.03, 4);
    view.x = cx - (cx - view.x) * next / view.zoom;
    view.y = cy - (cy - view.y) * next / view.zoom;
    view.zoom = next;
    move();
  }

  function fit(whole) {
    const width = (drawn.columns) * COLUMN + 180, height = Math.max(drawn.rows, 1) * ROW + 2 * MARGIN;
    const room = canvas.getBoundingClientRect();
    const both = Math.min(room.width / width, room.height / height);
    view.zoom = clip(whole ? both : Math.max(both, 0.75), 0.03, 1);
    view.x = 0;
    const root = drawn.roots.length ? MARGIN + drawn.row.get(drawn.roots[0]) * ROW : 0;
    view.y = height * view.zoom <= room.height ? (room.height - height * view.zoom) / 2
      : clip(room.height / 2 - root * view.zoom, room.height - height * view.zoom, 0);
    move();
  }

  function goTo(at) {
    if (at < 0 || at >= items.length) return;
    items[focus >= 0 ? focus : 0].node.setAttribute('tabindex', '-1');
    focus = at;
    const { node, column, row } = items[at];
    node.setAttribute('tabindex', '0');
    node.focus({ preventScroll: true });
    const room = canvas.getBoundingClientRect();
    const x = (MARGIN + (column - 0.5) * COLUMN) * view.zoom + view.x;
    const y = (MARGIN + row * ROW) * view.zoom + view.y;
    if (x < 40 || x > room.width - 100) view.x += room.width / 2 - x;
    if (y < 30 || y > room.height - 30) view.y += room.height / 2 - y;
    move();
  }

  function neighbour(name) {
    if (focus < 0) return 0;
    const { edge, column } = items[focus];
    const find = (test) => items.findIndex(test);
    if (name === 'ArrowRight') return find((item) => item.edge.from === edge.to);
    if (name === 'ArrowLeft') {
      return find((item) => item.edge.to === edge.from && drawn.isTree(item.edge));
    }
    const next = focus + (name === 'ArrowDown' ? 1 : -1);
    return items[next] && items[next].column === column ? next : -1;
  }

  canvas.addEventListener('keydown', (event) => {
    const room = canvas.getBoundingClientRect();
    const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key in arrows) {
      if (event.shiftKey) {
        view.x += 60 * arrows[event.key][0];
        view.y += 60 * arrows[event.key][1];
        move();
      } else goTo(neighbour(event.key));
    } else if (event.key === '+' || event.key === '=') zoomTo(view.zoom * 1.25, room.width / 2, room.height / 2);
    else if (event.key === '-') zoomTo(view.zoom / 1.25, room.width / 2, room.height / 2);
    else if (event.key === '0') fit(true);
    else if ((event.key === 'Enter' || event.key === ' ') && focus >= 0) open(items[focus]);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const room = canvas.getBoundingClientRect();
    zoomTo(view.zoom * 1.0015 ** -event.deltaY, event.clientX - room.left, event.clientY - room.top);
  }, { passive: false });
  canvas.addEventListener('pointerdown', (event) => {
    const from = { x: event.clientX - view.x, y: event.clientY - view.y, px: event.clientX, py: event.clientY };
    view.moved = false;
    const drag = (e) => {
      if (!view.moved && Math.hypot(e.clientX - from.px, e.clientY - from.py) < 4) return;
      view.moved = true;
      view.x = e.clientX - from.x;
      view.y = e.clientY - from.y;
      move();
    };
    const stop = () => {
      window.removeEventListener('pointermove', drag);
      window.removeEventListener('pointerup', stop);
    };
    window.addEventListener('pointermove', drag);
    window.addEventListener('pointerup', stop);
  });

  const list = h('ul', { class: 'rollouts', 'aria-label': 'Rollouts' });
  const order = group.rollouts.map((_, r) => r)
    .sort((a, b) => statusRank(group, -1 - a) - statusRank(group, -1 - b) || a - b);
  list.append(...order.map((r) => {
    const rollout = group.rollouts[r];
    const button = h('button', {
      type: 'button', 'aria-pressed': 'false', onclick: () => {
        view.picked = view.picked === r ? null : r;
        list.querySelectorAll('button').forEach((other) => other.setAttribute('aria-pressed',
          String(other === button && view.picked !== null)));
        paint();
        if (view.picked !== null) select({ rollout: r });
        else select(null);
      },
    }, mark(rollout.status), ' ', h('bdi', {}, oneLine(rollout.id, 40)),
    h('span', { class: 'quiet', title: plural(rollout.steps, 'step') }, ` ${rollout.steps}`));
    return h('li', {}, button);
  }));

  const root = h('div', { class: 'tree-view' },
    h('div', { class: 'tools' },
      h('button', { type: 'button', 'aria-label': 'Zoom in', onclick: () => zoomTo(view.zoom * 1.25, 200, 200) }, '+'),
      h('button', { type: 'button', 'aria-label': 'Zoom out', onclick: () => zoomTo(view.zoom / 1.25, 200, 200) }, '−'),
      h('button', { type: 'button', onclick: () => fit(true) }, 'Fit'),
      h('button', {
        type: 'button', 'aria-pressed': 'false', onclick: (event) => {
          view.unfolded = view.unfolded === 'all' ? new Set() : 'all';
          event.target.setAttribute('aria-pressed', String(view.unfolded === 'all'));
          draw();
          fit(false);
        },
      }, 'Unfold all'),
      key, status),
    list, canvas);

  return {
    root,
    show() { draw(); fit(false); },
    update(changed) {
      if (changed && 'level' in changed) {
        view.unfolded = view.unfolded === 'all' ? 'all' : new Set();
        draw();
        fit(false);
      } else paint();
    },
  };
}

// The steps of a folded chain in order: the same action by all its rollouts at each place.
function chainSteps(group, edge) {
  const byPlace = new Map();
  const first = new Map();
  for (const i of edge.steps) {
    const r = group.rolloutOf[i];
    if (!first.has(r) || i < first.get(r)) first.set(r, i);
  }
  for (const i of edge.steps) {
    const place = i - first.get(group.rolloutOf[i]);
    if (!byPlace.has(place)) byPlace.set(place, []);
    byPlace.get(place).push(i);
  }
  return [...byPlace.entries()].sort((a, b) => a[0] - b[0]).map(([place, at]) => ({ place, at }));
}
