// A group merged by state, and where to draw it: nodes are states, edges are actions.
//
// A state's parent is the state from which most rollouts first arrive at it, among those that some
// rollout reaches sooner (so that parents form no cycle). Its column is one more than the largest
// among the states before it that some rollout reaches sooner. Ends of rollouts and states
// without children take the rows 0, 1, 2 … in depth-first order, any other state the middle between
// its first and last child; in groups of many rollouts it stands in line with the first, so that
// the most travelled path is straight. A run of states in which nothing parts, joins or ends is
// folded into one edge. Actions that leave the state as it is belong to the node.

const FOLD_FROM = 3;
const MANY = 20;

// Nodes with their outgoing edges; an edge is one (state, action, target), an end mark the target
// −1 − rollout of a last step.
function buildGraph(group, level) {
  const nodes = new Map();
  const node = (state) => {
    if (!nodes.has(state)) {
      nodes.set(state, {
        state, stays: [], out: new Map(), before: new Map(), after: new Set(), ends: [],
        entries: 0, soonest: Infinity,
      });
    }
    return nodes.get(state);
  };
  const roots = new Set();
  group.rollouts.forEach((_, r) => {
    const from = group.starts[r], to = group.starts[r + 1];
    if (from === to) return;
    roots.add(level.states[from]);
    const arrived = new Set([level.states[from]]);
    for (let i = from; i < to; i++) {
      const here = node(level.states[i]);
      here.soonest = Math.min(here.soonest, group.time[i]);
      const last = i === to - 1;
      const target = last ? -1 - r : level.states[i + 1];
      if (target === here.state) {
        here.stays.push(i);
        continue;
      }
      const name = `${level.actions[i]}>${target}`;
      if (!here.out.has(name)) {
        here.out.set(name, { from: here.state, to: target, steps: [] });
        if (!last) node(target).entries += 1;
      }
      here.out.get(name).steps.push(i);
      if (last) {
        here.ends.push(r);
        continue;
      }
      here.after.add(target);
      const next = node(target);
      if (!next.before.has(here.state)) next.before.set(here.state, { first: i, arrivals: 0 });
      if (!arrived.has(target)) {
        arrived.add(target);
        next.before.get(here.state).arrivals += 1;
      }
    }
  });
  return { nodes, roots: [...roots] };
}

function distinct(group, steps) {
  return new Set(steps.map((i) => group.rolloutOf[i]));
}

// Lay the graph out. `unfolded` is a set of first inner states of chains that stay open, or 'all'.
function layOut(group, level, unfolded) {
  const graph = level.graph || (level.graph = buildGraph(group, level));
  const { nodes, roots } = graph;
  const parent = new Map(roots.map((state) => [state, null]));
  for (const node of nodes.values()) {
    if (parent.has(node.state)) continue;
    let best = null;
    for (const [state, from] of node.before) {
      if (nodes.get(state).soonest >= node.soonest) continue;
      if (!best || from.arrivals > best.arrivals
          || (from.arrivals === best.arrivals && from.first < best.first)) {
        best = { state, ...from };
      }
    }
    parent.set(node.state, best.state);
  }
  const children = childrenOf(group, nodes, parent, roots);
  const drawn = fold(group, nodes, children, parent, unfolded);
  place(group, drawn, roots, nodes);
  return { ...drawn, roots, nodes };
}

function childrenOf(group, nodes, parent, roots) {
  const children = new Map();
  const weights = new Map();
  for (const [state, from] of parent) {
    if (from === null) continue;
    if (!children.has(from)) children.set(from, []);
    children.get(from).push(state);
    weights.set(state, nodes.get(state).before.get(from));
  }
  for (const list of children.values()) {
    list.sort((a, b) => weights.get(b).arrivals - weights.get(a).arrivals
      || weights.get(a).first - weights.get(b).first);
  }
  return children;
}

// Edges to draw, the unbranched runs among them as chains of several states.
function fold(group, nodes, children, parent, unfolded) {
  const inner = new Set();
  for (const node of nodes.values()) {
    const single = node.entries === 1 && node.out.size === 1
      && node.after.size + node.ends.length === 1 && parent.get(node.state) !== null;
    if (single) inner.add(node.state);
  }
  const edges = [];
  for (const node of nodes.values()) {
    if (inner.has(node.state)) continue;
    for (const edge of node.out.values()) {
      const states = [];
      let at = edge, steps = [...edge.steps];
      const parts = [edge];
      while (at.to >= 0 && inner.has(at.to)) {
        const next = nodes.get(at.to);
        states.push(at.to);
        at = next.out.values().next().value;
        parts.push(at);
        steps = steps.concat(next.stays, at.steps);
      }
      const whole = parts.length >= FOLD_FROM && unfolded !== 'all' && !unfolded.has(states[0]);
      if (whole) {
        steps.sort((a, b) => group.time[a] - group.time[b] || a - b);
        edges.push({ from: edge.from, to: at.to, steps, chain: parts, states });
      } else edges.push(...parts);
    }
  }
  return { edges, children, parent };
}

function place(group, drawn, roots, nodes) {
  const { edges, children } = drawn;
  const outgoing = new Map();
  for (const edge of edges) {
    if (!outgoing.has(edge.from)) outgoing.set(edge.from, []);
    outgoing.get(edge.from).push(edge);
    edge.rollouts = distinct(group, edge.steps);
  }
  // children of a drawn state: across folded chains
  const order = new Map();
  const row = new Map(), column = new Map();
  const entries = new Map();  // edges side by side into one state need room
  for (const edge of edges) {
    const pair = `${edge.from}>${edge.to}`;
    entries.set(pair, (entries.get(pair) || 0) + 1);
  }
  const below = (state) => {
    const seen = new Set(), list = [];
    for (const edge of outgoing.get(state) || []) {
      if (edge.to < 0) continue;
      const first = edge.states ? edge.states[0] : edge.to;
      if ((drawn.parent.get(first) === state) && !seen.has(edge.to)) {
        const isOwn = !edge.states || drawn.parent.get(edge.to) === edge.states[edge.states.length - 1];
        if (isOwn) {
          seen.add(edge.to);
          list.push({ first, to: edge.to });
        }
      }
    }
    const rank = new Map((children.get(state) || []).map((child, at) => [child, at]));
    list.sort((a, b) => rank.get(a.first) - rank.get(b.first));
    const ends = (outgoing.get(state) || []).filter((edge) => edge.to < 0);
    ends.sort((a, b) => statusRank(group, a.to) - statusRank(group, b.to) || b.to - a.to);
    return [...list.map((item) => item.to), ...ends.map((edge) => edge.to)];
  };
  // depth first, without recursion: rollouts may be long
  let rows = 0;
  const many = group.rollouts.length > MANY;
  for (const root of roots) {
    const stack = [[root, 0, below(root)]];
    order.set(root, stack[0][2]);
    while (stack.length) {
      const top = stack[stack.length - 1];
      const [state, at, list] = top;
      if (at < list.length) {
        top[1] += 1;
        const child = list[at];
        if (child < 0) {
          row.set(child, rows);
          rows += 1;
        } else {
          const following = below(child);
          order.set(child, following);
          stack.push([child, 0, following]);
        }
        continue;
      }
      if (!list.length) {
        row.set(state, rows);
        rows += 1;
      } else row.set(state, (row.get(list[0]) + row.get(list[many ? 0 : list.length - 1])) / 2);
      stack.pop();
      const above = stack.length ? stack[stack.length - 1][0] : null;
      rows += (entries.get(`${above}>${state}`) || 1) - 1;
    }
  }
  // columns: the longest path over edges that lead to a state reached later
  const states = [...order.keys()];
  states.sort((a, b) => nodes.get(a).soonest - nodes.get(b).soonest);
  const rank = new Map(states.map((state, at) => [state, at]));
  roots.forEach((root) => column.set(root, 0));
  for (const state of states) {
    for (const edge of outgoing.get(state) || []) {
      if (edge.to >= 0 && rank.get(edge.to) <= rank.get(state)) continue;
      column.set(edge.to, Math.max(column.get(edge.to) || 0, column.get(state) + 1));
    }
  }
  Object.assign(drawn, {
    row, column, rows, outgoing, order,
    columns: 1 + Math.max(0, ...column.values()),
    isTree: (edge) => edge.to < 0 || (order.get(edge.from) || []).includes(edge.to),
  });
}

function statusRank(group, end) {
  const ranks = { passed: 0, failed: 1, incomplete: 2, unknown: 3 };
  return ranks[group.rollouts[-1 - end].status];
}
