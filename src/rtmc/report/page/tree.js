// The tree: a group merged by state, root left, coloured by advantage.

const COLUMN = 244, ROW = 34, BEND = 40, MARGIN = 44, LETTER = 7.1;
const SMALLEST = 0.7;  // the first view does not shrink below this

function treeView(group, select, signal) {
  const view = { picked: null, unfolded: new Set(), chosen: null, zoom: 1, x: 0, y: 0, moved: false, fitted: false };
  const level = () => levelOf(group);
  const canvas = s('svg', {
    class: 'tree', role: 'application', tabindex: '0', width: '100%',
    'aria-label': 'Tree of states and actions. Arrow keys go from edge to edge, Enter opens one, '
      + 'plus and minus zoom, 0 fits, shift and arrow keys move the picture.',
  });
  const scene = s('g', {});
  canvas.append(scene);
  const status = h('p', { class: 'quiet', role: 'status', 'aria-live': 'polite' });
  const key = h('span', {});
  let drawn = null, items = [], focus = -1;
  const X = (column) => MARGIN + column * COLUMN;
  const Y = (row) => MARGIN + row * ROW;
  const place = (id) => [X(drawn.column.get(id)), Y(drawn.row.get(id))];

  function draw() {
    drawn = layOut(group, level(), view.unfolded);
    items = [];
    focus = -1;
    const bundles = new Map();
    for (const edge of drawn.edges) {
      const bundle = `${edge.from}>${edge.to}`;
      const nth = bundles.get(bundle) || 0;
      bundles.set(bundle, nth + 1);
      items.push(drawn.isTree(edge) ? edgeItem(edge, nth) : returningItem(edge));
    }
    const points = [];
    for (const state of drawn.order.keys()) {
      const [x, y] = place(state);
      points.push(s('circle', {
        cx: x, cy: y, r: 5.5, class: 'state', onclick: () => { if (!view.moved) select({ state }); },
      }, s('title', {}, shortKey(level().stateKeys[state], 400))));
      if (drawn.nodes.get(state).stays.length) items.push(stayItem(state, x, y));
    }
    group.rollouts.forEach((rollout, r) => {
      if (!drawn.row.has(-1 - r)) return;
      const [x, y] = place(-1 - r);
      points.push(s('g', { class: 'ending', 'data-rollout': r, onclick: () => { if (!view.moved) pick(r); } },
        s('text', { x, y: y + 5.5, class: `end ${rollout.status}`, 'text-anchor': 'middle' }, MARKS[rollout.status]),
        s('text', { x: x + 14, y: y + 4, class: 'name' }, named(rollout.id, 36)),
        s('title', {}, `${named(rollout.id, 200)}: ${rollout.status}`)));
    });
    items.sort((a, b) => a.column - b.column || a.row - b.row);
    const below = items.filter((item) => item.returns), above = items.filter((item) => !item.returns);
    scene.replaceChildren(...[...below, ...above].map((item) => item.node), ...points);
    if (items.length) items[0].node.setAttribute('tabindex', '0');
    paint();
    status.textContent = group.n
      ? `${plural(drawn.order.size, 'state')} and ${plural(drawn.edges.length, 'edge')} drawn`
      : 'No rollout of this group has a step.';
  }

  // One edge along its own row: a bend, then a straight line with the label above it.
  function edgeItem(edge, nth) {
    const [x1, y1] = place(edge.from);
    const [x2, target] = place(edge.to);
    const y2 = target + ROW * nth;
    const width = 1.4 + 1.5 * Math.sqrt(edge.rollouts.size);
    const end = x2 - (edge.to < 0 ? 10 : 6);
    const bend = `M${x1},${y1}C${x1 + BEND * 0.6},${y1} ${x1 + BEND * 0.3},${y2} ${x1 + BEND},${y2}`;
    const tail = nth ? `L${end - 24},${y2}L${end},${target}` : `L${end},${y2}`;
    return item(edge, {
      line: s('path', { d: edge.chain ? bend : bend + tail, 'stroke-width': width.toFixed(2) }),
      hit: s('path', { d: bend + tail, class: 'hit' }),
      strip: edge.chain ? stripOf(edge, x1 + BEND, end, y2, width) : [],
      text: s('text', { x: x1 + BEND + 2, y: (y2 - width / 2 - 4.5).toFixed(1), class: 'label' }),
      room: Math.floor((end - (nth ? 24 : 0) - x1 - BEND) / LETTER),
      column: drawn.column.get(edge.to),
      row: drawn.row.get(edge.to) + nth,
    });
  }

  // An edge to a state that was reached another way: bowed below the rows it crosses.
  function returningItem(edge) {
    const [x1, y1] = place(edge.from);
    const [x2, y2] = place(edge.to);
    const low = Math.max(y1, y2) + ROW * 1.1, reach = Math.max(70, Math.abs(x2 - x1) * 0.3);
    const d = `M${x1},${y1}C${x1 + reach},${low} ${x2 - reach},${low} ${x2},${y2}`;
    return item(edge, {
      line: s('path', { d, 'stroke-width': (1.2 + Math.sqrt(edge.rollouts.size)).toFixed(2) }),
      hit: s('path', { d, class: 'hit' }),
      strip: [],
      text: s('text', {
        x: (x1 + x2) / 2, y: ((y1 + y2) / 8 + low * 0.75 - 4).toFixed(1), class: 'label', 'text-anchor': 'middle',
      }),
      room: 26,
      column: drawn.column.get(edge.from) + 1,
      row: Math.max(drawn.row.get(edge.from), drawn.row.get(edge.to)) + 0.6,
      returns: true,
    });
  }

  // The steps that leave a state as it is.
  function stayItem(state, x, y) {
    const edge = { from: state, to: state, steps: drawn.nodes.get(state).stays };
    edge.rollouts = distinct(group, edge.steps);
    return item(edge, {
      line: null, strip: [],
      // below the line that leads here, where nothing else is
      hit: s('rect', { x: x - 64, y: y + 4, width: 60, height: 16, class: 'hit' }),
      text: s('text', { x: x - 7, y: y + 16, class: 'stays', 'text-anchor': 'end' }),
      column: drawn.column.get(state), row: drawn.row.get(state) - 0.3, stays: true,
    });
  }

  function item(edge, parts) {
    const made = { edge, ...parts, title: s('title', {}) };
    made.node = s('g', {
      tabindex: '-1', role: 'button',
      onclick: () => { if (!view.moved) open(made); },
      onfocus: () => { focus = items.indexOf(made); },
    }, made.title, made.line, made.strip.map((part) => part.node), made.hit, made.text);
    return made;
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
    const largest = largestOf([Array.from(advantages).filter(isNumber)]);
    for (const one of items) paintItem(one, largest);
    scene.querySelectorAll('.ending').forEach((ending) => ending.classList.toggle(
      'dim', view.picked !== null && Number(ending.getAttribute('data-rollout')) !== view.picked));
    key.replaceChildren(legend(largest));
  }

  function paintItem(one, largest) {
    const { edge } = one;
    const lit = view.picked === null || edge.rollouts.has(view.picked);
    one.node.setAttribute('class', `item ${lit ? '' : 'dim'} ${view.picked !== null && lit ? 'lit' : ''} ${
      isChosen(one) ? 'chosen' : ''}`);
    const found = one.stays ? strongest(edge.steps) : worth(group, edge.steps);
    const value = isNumber(found.value) && largest > 0 ? `${found.differ ? '≈' : ''}${signed(found.value, 2)}` : '';
    const name = one.stays ? `↻${edge.steps.length}` : edge.chain ? plural(one.strip.length, 'step')
      : level().actionKeys[level().actions[edge.steps[0]]];
    if (one.line) {
      one.line.setAttribute('class', `edge line-tone ${one.returns ? 'again' : ''} ${tone(found.value, largest)}`);
    }
    for (const part of one.strip) {
      part.node.setAttribute('class', `fill ${tone(worth(group, part.at).value, largest)}`);
    }
    const front = value || (one.stays ? '' : `×${edge.rollouts.size}`);
    one.text.textContent = one.stays ? `${name} ${front}`.trim()
      : `${front} ${shortAction(name, one.room - front.length - 1)}`;
    const said = one.stays
      ? `${plural(edge.steps.length, 'step')} that ${edge.steps.length === 1 ? 'leaves' : 'leave'} the state as it is, by ${
        plural(edge.rollouts.size, 'rollout')}, strongest advantage ${signed(found.value)}`
      : `${edge.chain ? 'Folded chain of ' : ''}${shortKey(name, 160)}, taken by ${plural(edge.rollouts.size, 'rollout')} (${
        tally(group, edge.rollouts)}), advantage ${isNumber(found.value) ? signed(found.value) : 'none'}`;
    one.node.setAttribute('aria-label', said);
    one.title.textContent = said;
  }

  // Of the steps that stay, the one with most credit or blame.
  function strongest(steps) {
    const cells = new Map();
    for (const i of steps) {
      if (!cells.has(level().actions[i])) cells.set(level().actions[i], []);
      cells.get(level().actions[i]).push(i);
    }
    let best = { value: NaN, differ: false };
    for (const own of cells.values()) {
      const found = worth(group, own);
      if (isNumber(found.value) && !(Math.abs(found.value) <= Math.abs(best.value))) best = found;
    }
    return { value: best.value, differ: false };
  }

  function isChosen({ edge, stays }) {
    const { chosen } = view;
    if (!chosen) return false;
    if (chosen.chain) return edge.chain && edge.states[0] === chosen.chain.states[0];
    if (chosen.action === undefined) return stays && chosen.state === edge.from;
    return edge.steps.some((i) => level().states[i] === chosen.state && level().actions[i] === chosen.action);
  }

  function open({ edge, stays }) {
    if (edge.chain) select({ chain: edge });
    else if (stays) select({ state: edge.from });
    else select({ state: edge.from, action: level().actions[edge.steps[0]] });
  }

  function pick(r) {
    view.picked = view.picked === r ? null : r;
    pressed();
    paint();
    select(view.picked === null ? null : { rollout: r });
  }

  function pressed() {
    list.querySelectorAll('button').forEach((button) => button.setAttribute(
      'aria-pressed', String(Number(button.dataset.rollout) === view.picked)));
  }

  function move() {
    scene.setAttribute('transform', `translate(${view.x.toFixed(1)},${view.y.toFixed(1)}) scale(${view.zoom.toFixed(4)})`);
    canvas.classList.toggle('far', view.zoom < 0.5);
  }

  function zoomTo(zoom, cx, cy) {
    const next = clip(zoom, 0.03, 4);
    view.x = cx - (cx - view.x) * next / view.zoom;
    view.y = cy - (cy - view.y) * next / view.zoom;
    view.zoom = next;
    move();
  }

  function zoomBy(factor) {
    const room = canvas.getBoundingClientRect();
    zoomTo(view.zoom * factor, room.width / 2, room.height / 2);
  }

  const extent = () => [
    MARGIN + Math.max(drawn.columns - 1, 0) * COLUMN + 170, Math.max(drawn.rows - 1, 0) * ROW + 2.4 * MARGIN];

  function fit(whole) {
    const [width, height] = extent();
    const { width: wide } = canvas.getBoundingClientRect();
    if (!wide) return;
    const most = Math.max(window.innerHeight - 340, 300);
    canvas.setAttribute('height', clip(height * clip(wide / width, SMALLEST, 1) + 16, 200, most).toFixed(0));
    const room = canvas.getBoundingClientRect();
    view.fitted = true;
    const both = Math.min(room.width / width, room.height / height);
    view.zoom = clip(whole ? both : Math.max(both, SMALLEST), 0.03, 1);
    view.x = 0;
    const root = drawn.roots.length ? Y(drawn.row.get(drawn.roots[0])) : 0;
    view.y = height * view.zoom <= room.height ? (room.height - height * view.zoom) / 2
      : clip(room.height / 2 - root * view.zoom, room.height - height * view.zoom, 0);
    move();
  }

  // Bring a place of the picture into sight.
  function bring(column, row) {
    const room = canvas.getBoundingClientRect();
    const x = X(column - 0.5) * view.zoom + view.x, y = Y(row) * view.zoom + view.y;
    if (x < 60 || x > room.width - 100) view.x += room.width / 2 - x;
    if (y < 30 || y > room.height - 30) view.y += room.height / 2 - y;
    move();
  }

  function goTo(at) {
    if (at < 0 || at >= items.length) return;
    items[Math.max(focus, 0)].node.setAttribute('tabindex', '-1');
    focus = at;
    items[at].node.setAttribute('tabindex', '0');
    items[at].node.focus({ preventScroll: true });
    bring(items[at].column, items[at].row);
  }

  function neighbour(name) {
    if (focus < 0) return 0;
    const { edge, column, stays } = items[focus];
    if (name === 'ArrowRight') return items.findIndex((one) => !one.stays && one.edge.from === edge.to);
    if (name === 'ArrowLeft') {
      return items.findIndex((one) => !one.stays && !one.returns && one.edge.to === edge.from && one !== items[focus]
        && (stays || one.edge.from !== edge.from || one.edge.to !== edge.to));
    }
    const next = focus + (name === 'ArrowDown' ? 1 : -1);
    return items[next] && items[next].column === column ? next : -1;
  }

  canvas.addEventListener('keydown', (event) => {
    const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.key in arrows) {
      if (event.shiftKey) {
        view.x += 60 * arrows[event.key][0];
        view.y += 60 * arrows[event.key][1];
        move();
      } else goTo(neighbour(event.key));
    } else if (event.key === '+' || event.key === '=') zoomBy(1.25);
    else if (event.key === '-') zoomBy(0.8);
    else if (event.key === '0') fit(true);
    else if ((event.key === 'Enter' || event.key === ' ') && focus >= 0) open(items[focus]);
    else return;
    event.preventDefault();
  });

  // The wheel belongs to the page until the picture was touched, or with Ctrl.
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey && !canvas.contains(document.activeElement)) return;
    event.preventDefault();
    const room = canvas.getBoundingClientRect();
    zoomTo(view.zoom * 1.0015 ** -event.deltaY, event.clientX - room.left, event.clientY - room.top);
  }, { passive: false });

  // One pointer drags, two pinch.
  const pointers = new Map();
  canvas.addEventListener('pointerdown', (event) => {
    view.moved = false;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  window.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (!before || !canvas.isConnected) return;
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    if (others.length) {
      const room = canvas.getBoundingClientRect();
      const apart = (a) => Math.hypot(a.x - others[0].x, a.y - others[0].y) || 1;
      const now = { x: event.clientX, y: event.clientY };
      zoomTo(view.zoom * apart(now) / apart(before), (now.x + others[0].x) / 2 - room.left, (now.y + others[0].y) / 2 - room.top);
      view.moved = true;
    } else {
      if (!view.moved && Math.hypot(event.clientX - before.x, event.clientY - before.y) < 4) return;
      view.moved = true;
      view.x += event.clientX - before.x;
      view.y += event.clientY - before.y;
      move();
    }
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }, { signal });
  for (const name of ['pointerup', 'pointercancel']) {
    window.addEventListener(name, (event) => pointers.delete(event.pointerId), { signal });
  }

  // On paper the whole picture, whatever part the screen shows.
  window.addEventListener('beforeprint', () => {
    if (!canvas.isConnected) return;
    const [width, height] = extent();
    canvas.setAttribute('viewBox', `0 0 ${width} ${height}`);
    scene.removeAttribute('transform');
    canvas.classList.remove('far');
  }, { signal });
  window.addEventListener('afterprint', () => {
    canvas.removeAttribute('viewBox');
    move();
  }, { signal });

  const order = group.rollouts.map((_, r) => r)
    .sort((a, b) => statusRank(group, -1 - a) - statusRank(group, -1 - b) || a - b);
  const list = h('ul', { class: 'rollouts', 'aria-label': 'Rollouts' }, order.map((r) => {
    const rollout = group.rollouts[r];
    return h('li', {}, h('button', {
      type: 'button', 'aria-pressed': 'false', 'data-rollout': r, onclick: () => pick(r),
    }, mark(rollout.status), ' ', h('bdi', {}, named(rollout.id, 40)),
    h('span', { class: 'quiet', title: plural(rollout.steps, 'step') }, ` ${rollout.steps}`)));
  }));

  const unfoldAll = h('button', {
    type: 'button', 'aria-pressed': 'false', onclick: () => {
      view.unfolded = view.unfolded === 'all' ? new Set() : 'all';
      redraw();
    },
  }, 'Unfold all');

  function redraw() {
    unfoldAll.setAttribute('aria-pressed', String(view.unfolded === 'all'));
    draw();
    fit(false);
  }

  const root = h('div', { class: 'tree-view' },
    h('div', { class: 'tools' },
      h('button', { type: 'button', 'aria-label': 'Zoom in', onclick: () => zoomBy(1.25) }, '+'),
      h('button', { type: 'button', 'aria-label': 'Zoom out', onclick: () => zoomBy(0.8) }, '−'),
      h('button', { type: 'button', onclick: () => fit(true) }, 'Fit'),
      unfoldAll, key, status),
    list, canvas, howToRead());

  return {
    root,
    show() {
      if (!drawn) draw();
      else paint();
      if (!view.fitted) fit(false);
    },
    update(changed) {
      if (changed && 'level' in changed) {
        if (view.unfolded !== 'all') view.unfolded = new Set();
        redraw();
      } else paint();
    },
    // Show in the picture what the panel shows.
    reveal(selection) {
      view.chosen = selection;
      if (!selection || selection.rollout === undefined) {
        if (!selection) view.picked = null;
        pressed();
      }
      if (!drawn) return;
      paint();
      if (!selection || !canvas.isConnected) return;
      const found = items.find(isChosen);
      if (found) bring(found.column, found.row);
    },
    // Open or close the chain that begins with a state.
    isOpen: (state) => view.unfolded === 'all' || view.unfolded.has(state),
    toggle(state) {
      if (view.unfolded === 'all') return;
      if (!view.unfolded.delete(state)) view.unfolded.add(state);
      draw();
    },
  };
}

function howToRead() {
  const lines = [
    ['circle', 'a state: what was done so far, in whatever order'],
    ['line', 'an action; its width is the number of rollouts that took it, its colour and number the advantage (≈: a mean of different ones; ×3: by 3 rollouts, nothing to tell apart)'],
    ['strip', 'several steps in which nothing parts, folded; open it to see or unfold them'],
    ['dashed', 'an action that leads to a state which was reached another way before'],
    ['↻2 +0.45', 'two steps that leave the state as it is (looking again, a test run twice), and the strongest advantage among them'],
    ['✔ ✘ ○ ?', 'the rollout passed, failed, was stopped by a limit, has no known outcome'],
    ['core.py:M:a3f2,Vf', 'a state’s key: per file V viewed (f all of it, [1-2] hundreds of lines, d a folder), S searched, M modified, C created, D deleted, R restored; a3f2 begins the digest of the text; what is in brackets has happened'],
  ];
  return h('details', { class: 'how' }, h('summary', {}, 'How to read this'),
    h('dl', {}, lines.map(([sign, meaning]) => h('div', {}, h('dt', {}, sign), h('dd', {}, meaning)))));
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
