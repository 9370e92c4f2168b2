// Putting it together: which group and which view, the settings, the theme.

const VIEWS = [['tree', 'Tree'], ['rollouts', 'Rollouts'], ['quadrants', 'Quadrants'], ['keys', 'Why merged']];
const app = { root: null, group: -1, view: 'tree', parts: null, scrolled: 0, leave: null };

async function start() {
  app.root = document.getElementById('app');
  try {
    store.overview = await unpack('overview');
  } catch (error) {
    app.root.replaceChildren(h('p', { class: 'note' }, `This browser cannot unpack the report (${error.message}). Any browser since 2023 can.`));
    return;
  }
  store.settings = defaults(store.overview.config);
  document.getElementById('title').textContent = oneLine(store.overview.title || 'rollouts', 120);
  document.getElementById('theme').addEventListener('click', turnTheme);
  document.getElementById('settings-used').textContent = Object.entries(store.overview.config)
    .map(([name, value]) => `${name} ${value === null ? 'none' : value}`).join(', ');
  store.listeners.push((changed) => { if (app.parts) app.parts.update(changed); });
  window.addEventListener('hashchange', route);
  window.addEventListener('beforeprint', () => {
    const line = document.querySelector('.on-paper');
    if (line) line.textContent = Object.entries(store.settings).map(([name, value]) => `${name} ${value}`).join(', ');
  });
  document.body.append(hatching());
  await route();
  document.documentElement.dataset.ready = 'true';
}

async function route() {
  const [, word, at, view] = window.location.hash.split('/');
  const index = Number(at);
  if (word === 'group' && Number.isInteger(index) && store.overview.rows[index]) {
    if (app.group < 0) app.scrolled = window.scrollY;
    app.view = VIEWS.some(([name]) => name === view) ? view : 'tree';
    if (app.group !== index || !app.parts) await showGroup(index);
    else app.parts.go(app.view);
    return;
  }
  app.group = -1;
  app.parts = null;
  app.root.replaceChildren(overviewView((chosen) => { window.location.hash = `#/group/${chosen}/tree`; }));
  window.scrollTo(0, app.scrolled);
}

async function showGroup(index) {
  const asked = window.location.hash;
  app.root.setAttribute('aria-busy', 'true');
  const group = await openGroup(index);
  app.root.removeAttribute('aria-busy');
  if (window.location.hash !== asked) return;  // somebody has gone on meanwhile
  app.group = index;
  const select = (selection, goesBack) => {
    views.tree.reveal(selection);
    views.detail.show(selection, goesBack);
  };
  const selectStep = (i) => {
    const level = levelOf(group);
    select({ state: level.states[i], action: level.actions[i] });
    views.keys.pick(i);
  };
  if (app.leave) app.leave.abort();
  app.leave = new AbortController();  // ends what a group's views listen to
  const views = {
    tree: treeView(group, select, app.leave.signal),
    rollouts: compareView(group, selectStep, select),
    quadrants: quadrantsView(group, selectStep),
    keys: keysView(group),
  };
  views.detail = detailView(group, select, views.tree);
  const row = store.overview.rows[index];
  const tabs = h('div', { role: 'tablist', 'aria-label': 'Views', class: 'tabs' }, VIEWS.map(([name, title]) => h('button', {
    type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'view',
    onclick: () => { window.location.hash = `#/group/${index}/${name}`; },
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const names = VIEWS.map(([other]) => other);
      const next = names[(names.indexOf(name) + step + names.length) % names.length];
      window.location.hash = `#/group/${index}/${next}`;
      tabs.querySelector(`#tab-${next}`).focus();
    },
  }, title)));
  const panel = h('div', { id: 'view', role: 'tabpanel', class: 'view' });
  const pairs = { previous: index - 1, next: index + 1 };
  app.root.replaceChildren(h('main', { class: 'group' },
    h('nav', { class: 'crumbs', 'aria-label': 'Groups' },
      h('a', { href: '#/' }, 'All groups'),
      Object.entries(pairs).map(([name, to]) => (store.overview.rows[to]
        ? h('a', { href: `#/group/${to}/${app.view}` }, name) : null))),
    h('h2', { class: 'problem', tabindex: '-1' }, h('bdi', {}, named(row.problem, 200))),
    h('p', { class: 'quiet' }, plural(row.rollouts, 'rollout'), ': ', outcomes(row), ` · ${plural(row.steps, 'step')}`),
    EXPLAINED[row.kind] ? h('p', { class: 'note' }, EXPLAINED[row.kind]) : null,
    settingsView(group), h('p', { class: 'on-paper' }), tabs,
    h('div', { class: 'columns' }, panel, views.detail.root)));
  app.parts = {
    go(name) {
      tabs.querySelectorAll('button').forEach((tab) => {
        const isThis = tab.id === `tab-${name}`;
        tab.setAttribute('aria-selected', String(isThis));
        tab.setAttribute('tabindex', isThis ? '0' : '-1');
      });
      panel.setAttribute('aria-labelledby', `tab-${name}`);
      panel.replaceChildren(views[name].root);
      views[name].show();
    },
    update(changed) {
      views[app.view].update(changed);
      views.detail.update(changed);
    },
  };
  views.detail.show(null);
  app.parts.go(app.view);
  window.scrollTo(0, 0);
  app.root.querySelector('.problem').focus({ preventScroll: true });
}

const EXPLAINED = {
  'all passed': 'All rollouts that count passed: nothing to tell apart, A = 0 everywhere. The tree still shows where they part and meet.',
  'none passed': 'No rollout that counts passed: nothing to tell apart, A = 0 everywhere. The tree still shows where they part and meet.',
  unknown: 'No rollout has an outcome that counts, so no step has credit. The tree still shows where they part and meet.',
  single: 'Only one rollout has an outcome that counts: nothing to compare it with, A = 0 everywhere.',
};

const ABOUT = {
  estimator: 'How advantages are computed. rtmc: Q − V′ on this tree. grpo: one number a rollout. grpo_step: standardised returns.',
  level: 'What counts as the same state. root: all. work: files changed, test results. content: what the code is now. '
    + 'coarse: files and operations. paper: operations per file with their texts. full: the whole history.',
  gamma: 'Discount a step: a reward k steps away counts γ^k.',
  'n-prior': 'How many visits the prior is worth in V′.',
  prior: 'What V is drawn to: the group’s success rate, that rate carried to the state’s depth, or nothing.',
};

// What if: the settings that can be changed here.
function settingsView(group) {
  const { config } = store.overview;
  const wanted = defaults(config);
  const box = h('form', { class: 'settings', 'aria-label': 'What if', onsubmit: (event) => event.preventDefault() });

  function draw() {
    const now = store.settings;
    const usesPrior = now.estimator === 'rtmc';
    const usesGamma = now.estimator !== 'grpo';
    const inPage = now.estimator in ESTIMATORS;
    const changed = Object.keys(wanted).filter((name) => String(wanted[name]) !== String(now[name]));
    const choice = (id, label, values, value, disabled, apply) => h('span', { class: 'field' }, h('label', { for: id }, label),
      h('select', { id, disabled, title: ABOUT[id], onchange: (event) => { change(apply(event.target.value)); draw(); box.querySelector(`#${id}`).focus(); } },
        values.map((one) => h('option', { value: one, selected: one === value }, one))));
    const amount = (id, label, value, low, high, step, disabled, apply) => {
      const output = h('input', {
        type: 'number', id: `${id}-number`, min: low, step: 'any', value, disabled, 'aria-label': label,
        onchange: (event) => use(event.target.value === '' ? NaN : Number(event.target.value)),
      });
      const slider = h('input', {
        type: 'range', id, min: low, max: high, step, value, disabled,
        oninput: (event) => use(Number(event.target.value)),
      });
      const use = (next) => {
        if (!Number.isFinite(next) || !apply(next)) {
          output.setAttribute('aria-invalid', 'true');
          return;
        }
        output.removeAttribute('aria-invalid');
        output.value = next;
        slider.value = next;
        change({ [id.replace('-', '_')]: next });
        reset.hidden = false;
      };
      return h('span', { class: 'field', title: ABOUT[id] }, h('label', { for: id }, label), slider, output);
    };
    const reset = h('button', {
      type: 'button', onclick: () => { change({ ...wanted }); draw(); },
    }, 'Reset');
    reset.hidden = !changed.length;
    box.replaceChildren(
      choice('estimator', 'Estimator', estimatorNames(group), now.estimator, false, (estimator) => ({ estimator })),
      choice('level', 'Level', group.levels.map((level) => level.name), levelOf(group).name, false, (level) => ({ level })),
      amount('gamma', 'γ', now.gamma, 0.5, 1, 0.005, !usesGamma || !inPage, (value) => value > 0 && value <= 1),
      amount('n-prior', 'n prior', now.n_prior, 0, 20, 0.5, !usesPrior || now.prior === 'none', (value) => value >= 0),
      choice('prior', 'Prior', ['success_rate', 'discounted', 'none'], now.prior, !usesPrior, (prior) => ({ prior })),
      reset);
  }

  draw();
  return box;
}

start();
