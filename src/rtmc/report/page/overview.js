// The first view: totals, the curve of overlap, and a row for every group.

const COLUMNS = [
  { name: 'Problem', key: (row) => row.problem, show: (row) => named(row.problem, 80), text: true },
  { name: 'Rollouts', key: (row) => row.rollouts, show: (row) => row.rollouts },
  {
    name: 'Outcomes', key: (row) => row.passed / Math.max(row.rollouts, 1),
    show: (row) => outcomes(row),
  },
  { name: 'Steps', key: (row) => row.steps, show: (row) => row.steps },
  {
    name: 'Overlap', key: (row) => row.overlap, show: (row) => percent(row.overlap, 1),
    title: 'Share of later steps whose state at least two rollouts reached',
  },
  {
    name: 'Branching', key: (row) => row.branching, show: (row) => row.branching,
    title: 'States in which at least two different actions were taken, by one rollout or several',
  },
  {
    name: 'Partings', key: (row) => row.partings, show: (row) => row.partings,
    title: 'States in which not all rollouts that came by did the same',
  },
  {
    name: 'Winners’ A < 0', key: (row) => (row.winnerSteps ? row.winnerNegative / row.winnerSteps : -1),
    show: (row) => percent(row.winnerNegative, row.winnerSteps),
    title: 'Share of the steps of passing rollouts that got less than nothing',
  },
  { name: 'Largest |A|', key: (row) => (row.kind === 'mixed' ? row.largest : -1), show: (row) => (row.kind === 'mixed' ? number(row.largest, 2) : '–') },
];

// How the table is sorted and filtered; kept while a group is looked at.
const table = { sort: null, down: true, words: '', kind: 'all' };

const KINDS = [
  ['all', 'all groups'], ['mixed', 'mixed outcomes'], ['all passed', 'all passed'],
  ['none passed', 'none passed'], ['unknown', 'no outcome that counts'], ['single', 'one that counts'],
];

function outcomes(row) {
  const parts = ['passed', 'failed', 'incomplete', 'unknown']
    .filter((status) => row[status]).map((status) => [mark(status), ` ${row[status]} `]);
  return h('span', { class: 'outcomes' }, parts);
}

function overviewView(open) {
  const { rows, totals, curve } = store.overview;
  const shown = table;
  if (shown.sort === null) {  // where credit is, first
    shown.sort = new Set(rows.map((row) => row.kind)).size > 1 ? COLUMNS.length - 1 : 0;
    shown.down = shown.sort > 0;
  }
  const body = h('tbody', {});
  const count = h('p', { class: 'quiet', role: 'status' });
  const heads = COLUMNS.map((column, at) => h('th', { scope: 'col', title: column.title },
    h('button', { type: 'button', onclick: () => sortBy(at) }, column.name)));
  const search = h('input', {
    type: 'search', id: 'search', placeholder: 'Problem …', value: shown.words, oninput: (event) => {
      shown.words = event.target.value.toLowerCase();
      fillRows();
    },
  });
  const present = new Set(rows.map((row) => row.kind));
  const kinds = h('select', {
    id: 'kind', onchange: (event) => { shown.kind = event.target.value; fillRows(); },
  }, KINDS.filter(([kind]) => kind === 'all' || present.has(kind)).map(([kind, name]) => (
    h('option', { value: kind, selected: kind === shown.kind },
      `${name} (${rows.filter((row) => kind === 'all' || row.kind === kind).length})`))));

  function sortBy(at) {
    shown.down = shown.sort === at ? !shown.down : !COLUMNS[at].text;
    shown.sort = at;
    fillRows();
  }

  function fillRows() {
    const { key } = COLUMNS[shown.sort];
    const chosen = rows.map((row, at) => ({ row, at }))
      .filter(({ row }) => shown.kind === 'all' || row.kind === shown.kind)
      .filter(({ row }) => row.problem.toLowerCase().includes(shown.words));
    const order = (a, b) => {
      const x = key(a.row), y = key(b.row);
      return (x < y ? -1 : x > y ? 1 : 0) * (shown.down ? -1 : 1) || a.at - b.at;
    };
    body.replaceChildren(...chosen.sort(order).map(({ row, at }) => h('tr', {},
      COLUMNS.map((column, c) => (c === 0
        ? h('th', { scope: 'row' }, h('a', {
          href: `#/group/${at}/tree`, onclick: (event) => { event.preventDefault(); open(at); },
        }, column.show(row)))
        : h('td', { 'data-name': column.name }, column.show(row)))))));
    heads.forEach((head, at) => head.setAttribute('aria-sort',
      at !== shown.sort ? 'none' : shown.down ? 'descending' : 'ascending'));
    count.textContent = chosen.length === rows.length ? plural(rows.length, 'group')
      : `${chosen.length} of ${plural(rows.length, 'group')}`;
  }

  fillRows();
  return h('main', { class: 'overview' },
    totalsView(totals),
    curveView(curve),
    h('section', { 'aria-label': 'Groups' },
      h('div', { class: 'tools' },
        h('label', { for: 'search' }, 'Search'), search,
        h('label', { for: 'kind' }, 'Show'), kinds, count),
      h('div', { class: 'scroll' },
        h('table', { class: 'groups' }, h('thead', {}, h('tr', {}, heads)), body))));
}

function totalsView(totals) {
  const level = Object.keys(totals.levels).pop();
  const found = totals.levels[level] || { share: 0, states: 0, singletons: 0 };
  const tiles = [
    ['groups', totals.groups, ''],
    ['rollouts', totals.rollouts, ['passed', 'failed', 'incomplete', 'unknown']
      .filter((status) => totals[status]).map((status) => `${totals[status]} ${status}`).join(', ')],
    ['steps', totals.steps, ''],
    ['overlap', percent(found.share, 1), `of later steps meet another rollout (level ${level})`],
    ['singleton states', percent(found.singletons, found.states), `of ${found.states} states`],
    ['winners’ steps with A < 0', percent(totals.winnerNegative, totals.winnerSteps),
      `of ${totals.winnerSteps} in groups of mixed outcome`],
  ];
  return h('dl', { class: 'tiles' }, tiles.map(([name, value, note]) => h('div', {},
    h('dt', {}, name), h('dd', {}, value), note ? h('dd', { class: 'quiet' }, note) : null)));
}

// Share of the steps with one index whose state several rollouts reached, a line a level.
function curveView(curve) {
  const levels = Object.keys(curve.shared).filter((level) => level !== 'root');
  // where a fifth of the steps of the fullest index are left, and fewer than ten, a share says little
  const most = Math.max(0, ...curve.steps);
  let end = curve.steps.length;
  while (end > 2 && curve.steps[end - 1] < Math.min(10, Math.ceil(most / 5))) end -= 1;
  const width = 640, height = 200, left = 44, bottom = 36, right = 12;
  const x = (t) => left + (width - left - right) * t / Math.max(end - 1, 1);
  const y = (share) => 8 + (height - bottom - 8) * (1 - share);
  const lines = levels.map((level, at) => {
    const points = [];
    for (let t = 0; t < end; t++) {
      if (curve.steps[t]) points.push([x(t), y((curve.shared[level][t] || 0) / curve.steps[t])]);
    }
    return { level, at, points };
  });
  const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((size) => end / size <= 9) || 5000;
  const ticks = [...Array(Math.ceil(end / apart)).keys()].map((i) => i * apart);
  const table = levels.map((level) => `${level}: ${[1, 5, 10, 20].filter((t) => t < end)
    .map((t) => `step ${t} ${percent(curve.shared[level][t] || 0, curve.steps[t])}`).join(', ')}`);
  return h('section', { class: 'curve' },
    h('h2', {}, 'Where rollouts still meet'),
    h('p', { class: 'quiet' },
      'Share of steps whose state at least two rollouts of the group reached, by step index.'),
    h('p', { class: 'curve-names' }, lines.map(({ level, at }) => h('span', { class: 'legend' },
      s('svg', { width: 30, height: 10, 'aria-hidden': 'true' },
        s('line', { x1: 0, x2: 30, y1: 5, y2: 5, class: `curve-line line-${at % 7}` })), oneLine(level, 24)))),
    h('div', { class: 'scroll' }, s('svg', {
      viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Overlap. ${table.join('; ')}`,
    },
    [0, 0.5, 1].map((share) => [
      s('line', { x1: left, x2: width - right, y1: y(share), y2: y(share), class: 'grid' }),
      s('text', { x: left - 6, y: y(share) + 4, 'text-anchor': 'end' }, `${share * 100} %`),
    ]),
    ticks.map((t) => s('text', { x: x(t), y: height - 20, 'text-anchor': 'middle' }, t)),
    s('text', { x: width / 2, y: height - 4, 'text-anchor': 'middle' }, 'step'),
    lines.map(({ points, at }) => s('polyline', {
      points: points.map((p) => p.map((v) => v.toFixed(1)).join(',')).join(' '),
      class: `curve-line line-${at % 7}`,
    })))));
}
