// The page of one evaluation, or of two: figures with their intervals, and a table of the problems.

const points = (value, digits = 1) => number(isNumber(value) ? 100 * value : value, digits);
const moved = (value) => signed(isNumber(value) ? 100 * value : value, 1);
const ratio = ([passed, counted]) => `${passed} of ${counted}`;
const rate = ([passed, counted]) => (counted ? passed / counted : -1);
const chances = (p) => (isNumber(p) && p < 0.001 ? '<0.001' : number(p));
const most = ([passed, counted]) => 2 * passed > counted;

const SINGLE = [
  { name: 'Problem', text: true, key: (row) => row.id, show: (row) => h('bdi', {}, named(row.id, 200)) },
  { name: 'Passed', key: (row) => rate(row.runs), show: (row) => ratio(row.runs), title: 'Of the counted runs' },
  {
    name: 'Majority', key: (row) => (row.runs[1] ? Number(most(row.runs)) : -1), title: 'More than half of the counted runs',
    show: (row) => mark(row.runs[1] ? (most(row.runs) ? 'passed' : 'failed') : 'unknown'),
  },
  { name: 'Not counted', key: (row) => row.notCounted, show: (row) => row.notCounted },
  { name: 'Incomplete', key: (row) => row.incomplete, show: (row) => row.incomplete, title: 'Stopped by a limit' },
];

const PAIR = [
  SINGLE[0],
  { name: 'Before', key: (row) => rate(row.before), show: (row) => ratio(row.before), title: 'Passed of the counted runs' },
  { name: 'After', key: (row) => rate(row.after), show: (row) => ratio(row.after), title: 'Passed of the counted runs' },
  { name: 'Change', key: (row) => row.change, show: (row) => moved(row.change), title: 'After minus before, in points' },
  {
    name: 'Majority', key: (row) => most(row.after) - most(row.before), title: 'More than half of the counted runs',
    show: (row) => (most(row.before) === most(row.after) ? 'same' : most(row.after) ? 'gained' : 'lost'),
  },
  { name: 'p', key: (row) => row.p, show: (row) => chances(row.p), title: 'Fisher’s test, mid-p, two-sided' },
  {
    name: 'p adjusted', key: (row) => row.adjusted ?? 2, title: 'For the number of problems; – where these runs cannot show a change',
    show: (row) => chances(row.adjusted) + (row.significant ? ' !' : ''),
  },
];

const PAIR_KINDS = {
  'all problems': () => true,
  'gained by majority': (row) => most(row.after) && !most(row.before),
  'lost by majority': (row) => most(row.before) && !most(row.after),
  'changed beyond luck (!)': (row) => row.significant,
};

const SINGLE_KINDS = {
  'all problems': () => true,
  'solved at least once': (row) => row.runs[0] > 0,
  'never solved': (row) => row.runs[0] === 0 && row.runs[1] > 0,
  'runs not counted': (row) => row.notCounted > 0,
};

async function start() {
  const { title, settings, evaluations, comparison, says } = await unpack('evaluation');
  document.getElementById('title').textContent = oneLine(title, 120);
  document.getElementById('theme').addEventListener('click', turnTheme);
  document.getElementById('settings-used').textContent = settings;
  const rows = comparison ? comparison.changes.map((row) => ({ ...row, change: rate(row.after) - rate(row.before) }))
    : evaluations[0].problems.map((one) => ({ ...one, runs: [one.passed, one.counted], notCounted: one.runs - one.counted }));
  document.getElementById('app').replaceChildren(h('main', { class: 'overview' },
    evaluations.map(figuresView),
    comparison ? comparisonView(comparison) : null,
    says.map((line) => h('p', { class: 'note' }, line)),
    comparison ? problemsView(rows, PAIR, PAIR_KINDS, 6, false) : problemsView(rows, SINGLE, SINGLE_KINDS, 1, false)));
  document.documentElement.dataset.ready = 'true';
}

function figuresView(one) {
  const sum = (name) => one.problems.reduce((total, problem) => total + problem[name], 0);
  const means = [[one.steps, 'steps'], [one.tokens, 'sampled tokens'], [one.seconds, 'seconds']]
    .filter(([value]) => isNumber(value)).map(([value, what]) => `${number(value, 1)} ${what}`);
  const stops = Object.entries(one.stop_reasons).map(([reason, count]) => `${count} ${oneLine(reason, 60)}`);
  const figures = [
    ...Object.entries(one.pass_at_k).map(([k, figure]) => [`pass@${k}`, figure]),
    [`majority of ${one.settings.majority}`, one.majority],
  ];
  return h('section', { class: 'curve' },
    h('h2', {}, h('bdi', {}, named(one.name, 200))),
    h('p', { class: 'quiet' }, [one.model, one.task].filter(Boolean).map((text) => `${oneLine(text, 80)} · `),
      `${plural(one.problems.length, 'problem')}, ${plural(sum('runs'), 'run')}: ${sum('passed')} passed, `,
      `${sum('counted') - sum('passed')} failed, ${sum('runs') - sum('counted')} not counted`,
      means.length ? ` · a run takes ${means.join(', ')}` : '', stops.length ? ` · ended by: ${stops.join(', ')}` : ''),
    h('div', { class: 'scroll' }, h('table', {},
      h('thead', {}, h('tr', {}, ['Figure', 'Per cent [95 %]', 'Problems', '0 to 100']
        .map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, figures.map(([name, figure]) => h('tr', {}, h('th', { scope: 'row' }, name),
        h('td', { class: 'value' }, interval(figure, points)),
        h('td', {}, figure.left_out ? `${figure.problems}; ${figure.left_out} with too few runs` : figure.problems),
        h('td', {}, whisker(figure, name))))))));
}

function span(figure, show) {
  return isNumber(figure.low) ? `[${show(figure.low)}, ${show(figure.high)}]` : '[?]';
}

function interval(figure, show) {
  return isNumber(figure.value) ? `${show(figure.value)} ${span(figure, show)}` : '–';
}

function whisker(figure, name) {
  if (!isNumber(figure.low)) return '–';
  const x = (share) => 5 + 110 * share;
  const line = (from, to, kind) => s('line', { x1: x(from), x2: x(to), y1: 8, y2: 8, class: kind });
  return s('svg', { width: 120, height: 16, role: 'img', 'aria-label': `${name}: ${interval(figure, points)}` },
    line(0, 1, 'grid'), line(figure.low, figure.high, 'curve-line'), s('circle', { cx: x(figure.value), cy: 8, r: 3.5, class: 'dots' }));
}

function comparisonView(found) {
  const chance = (flips) => `${number(flips.expected, 1)} expected if nothing changed, p ${chances(flips.p)}`;
  const tiles = [
    ['pass@1, difference', moved(found.difference.value),
      `${span(found.difference, moved)} on ${plural(found.changes.length, 'problem')} of both`],
    ['gained by majority', found.gained.ids.length, chance(found.gained)],
    ['lost by majority', found.lost.ids.length, chance(found.lost)],
    ['better, worse', `${found.better}, ${found.worse}`, `sign test p ${chances(found.sign_p)}`],
  ];
  const apart = [[found.only_before, `only in ${found.before}`], [found.only_after, `only in ${found.after}`],
    [found.left_out, 'without a counted run in one']].filter(([ids]) => ids.length)
    .map(([ids, what]) => `${ids.length} ${what}: ${oneLine(ids.join(', '), 300)}`);
  return h('section', { 'aria-label': 'Comparison' },
    h('h2', {}, h('bdi', {}, named(found.after, 100)), ' against ', h('bdi', {}, named(found.before, 100))),
    h('dl', { class: 'tiles' }, tiles.map(([name, value, note]) => h('div', {},
      h('dt', {}, name), h('dd', {}, value), h('dd', { class: 'quiet' }, note)))),
    apart.length ? h('p', { class: 'quiet' }, `Problems left out: ${apart.join('; ')}`) : null);
}

// A table to sort, search and filter.
function problemsView(rows, columns, kinds, sort, down) {
  const shown = { sort, down, words: '', kind: 'all problems' };
  const body = h('tbody', {});
  const count = h('p', { class: 'quiet', role: 'status' });
  const heads = columns.map((column, at) => h('th', { scope: 'col', title: column.title }, h('button', {
    type: 'button', onclick: () => {
      shown.down = shown.sort === at ? !shown.down : !column.text;
      shown.sort = at;
      fillRows();
    },
  }, column.name)));

  function fillRows() {
    const { key } = columns[shown.sort];
    const chosen = rows.filter(kinds[shown.kind]).filter((row) => row.id.toLowerCase().includes(shown.words));
    const order = (a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (shown.down ? -1 : 1);
    };
    body.replaceChildren(...chosen.sort(order).map((row) => h('tr', {}, columns.map((column, at) => (at === 0
      ? h('th', { scope: 'row' }, column.show(row)) : h('td', { 'data-name': column.name }, column.show(row)))))));
    heads.forEach((head, at) => head.setAttribute('aria-sort',
      at !== shown.sort ? 'none' : shown.down ? 'descending' : 'ascending'));
    count.textContent = chosen.length === rows.length ? plural(rows.length, 'problem')
      : `${chosen.length} of ${plural(rows.length, 'problem')}`;
  }

  fillRows();
  return h('section', { 'aria-label': 'Problems' }, h('h2', {}, 'Problems'),
    h('div', { class: 'tools' },
      h('label', { for: 'search' }, 'Search'),
      h('input', { type: 'search', id: 'search', placeholder: 'Problem …', oninput: (event) => { shown.words = event.target.value.toLowerCase(); fillRows(); } }),
      h('label', { for: 'kind' }, 'Show'),
      h('select', { id: 'kind', onchange: (event) => { shown.kind = event.target.value; fillRows(); } },
        Object.keys(kinds).map((kind) => h('option', { value: kind }, `${kind} (${rows.filter(kinds[kind]).length})`))),
      count),
    h('div', { class: 'scroll' }, h('table', { class: 'groups' }, h('thead', {}, h('tr', {}, heads)), body)));
}

start();
