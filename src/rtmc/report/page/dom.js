// Making elements, and writing values. Texts of rollouts enter the page through text nodes alone.

function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

function s(tag, props, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

// What cannot be seen is shown, not obeyed: control characters, marks that turn the direction of
// writing, characters without width.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Co}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

function visible(text) {
  return String(text).replace(/\r\n/g, '\n').replace(HIDDEN, (mark) => {
    const code = mark.codePointAt(0);
    if (code === 9 || code === 10) return mark;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}

function oneLine(text, length = Infinity) {
  const line = visible(text).replace(/\s+/g, ' ');
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}

// The name of a problem or rollout, which may be blank.
function named(id, length) {
  return oneLine(id, length).trim() ? oneLine(id, length) : '⟨blank⟩';
}

// Digests of 16 hexadecimal digits are shown with 4.
function shortKey(key, length = Infinity) {
  return oneLine(key.replace(/(?<![0-9A-Za-z])([0-9a-f]{4})[0-9a-f]{12}(?![0-9a-f])/g, '$1'), length);
}

// An action key in little room keeps its kind and the end of its target, which tell the most.
function shortAction(key, length) {
  const whole = shortKey(key);
  if (whole.length <= length) return whole;
  const at = whole.indexOf('@');
  if (at < 0 || at + 8 > length) return oneLine(whole, length);
  const tail = whole.slice(Math.max(whole.length - (length - at - 2), at + 1));
  const folder = tail.indexOf('/');
  return `${whole.slice(0, at + 1)}…${folder < 0 ? tail : tail.slice(folder)}`;
}

function isNumber(value) {
  return value !== null && value !== undefined && !Number.isNaN(value);
}

function number(value, digits = 3) {
  if (!isNumber(value)) return '–';
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '−');
}

function signed(value, digits = 3) {
  if (!isNumber(value)) return '–';
  const text = number(value, digits);
  return Number(value.toFixed(digits)) > 0 ? `+${text}` : text;
}

function percent(part, whole) {
  return whole ? `${(100 * part / whole).toFixed(0)} %` : '–';
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

// A key may break behind its separators.
function breakable(text) {
  return text.split(/(?<=[|,@/])/).flatMap((part, i) => (i ? [document.createElement('wbr'), part] : [part]));
}

const MARKS = { passed: '✔', failed: '✘', incomplete: '○', unknown: '?' };

const MEANINGS = {
  passed: 'passed', failed: 'failed', incomplete: 'incomplete: stopped by a limit',
  unknown: 'unknown outcome',
};

function mark(status) {
  return h('span', {
    class: `mark ${status}`, role: 'img', 'aria-label': status, title: MEANINGS[status],
  }, MARKS[status]);
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark'
    : window.matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
}

// The pattern of steps without credit, for the whole page.
function hatching() {
  return s('svg', { width: 0, height: 0, 'aria-hidden': 'true', class: 'defs' }, s('defs', {},
    s('pattern', { id: 'hatch', width: 4, height: 4, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      s('rect', { width: 4, height: 4, class: 'hatch-paper' }), s('rect', { width: 1.2, height: 4, class: 'hatch-line' }))));
}

// A diverging scale that the colour-blind can read: blue for more credit than expected, orange for
// less, and lighter towards nothing. Classes, because the page's policy forbids style attributes.
const TONES = 10;

function tone(value, largest) {
  if (!isNumber(value)) return 'a-none';
  const size = largest > 0 ? Math.min(1, Math.abs(value) / largest) : 0;
  const step = Math.round(size * TONES);
  if (step <= 0) return 'a-zero';
  return `a-${value > 0 ? 'plus' : 'minus'}-${step}`;
}

function legend(largest) {
  if (!largest) return h('span', { class: 'quiet' }, 'nothing to tell apart: A = 0 or none');
  const cells = [];
  for (let i = -TONES; i <= TONES; i++) {
    cells.push(s('rect', {
      x: (i + TONES) * 7, y: 0, width: 7, height: 10, class: `fill ${tone(i / TONES, 1)}`,
    }));
  }
  return h('span', { class: 'legend' },
    `A −${number(largest, 2)}`,
    s('svg', { width: (2 * TONES + 1) * 7, height: 10, 'aria-hidden': 'true' }, cells),
    `+${number(largest, 2)}`);
}

function largestOf(rows) {
  let largest = 0;
  for (const row of rows) {
    for (const value of row) if (Math.abs(value) > largest) largest = Math.abs(value);
  }
  return largest;
}
