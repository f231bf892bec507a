// A force-directed layout for small graphs, by connected component; components are placed side by side, largest first.
// It is deterministic.

const NEAR = 150; // preferred length of an edge
const MARGIN = 84;
const GAP = 28; // between components
const LABEL_HEIGHT = 46; // of a node with its label
const ROUNDS = 260;
const UNTANGLING = 400; // rounds, at most

/** The position of each node; `shape` is width divided by height, `widths` are those of the labels. */
export function layout(count, edges, shape, widths) {
  const nodes = Array.from({ length: count }, (_, at) => ({ x: 0, y: 0, dx: 0, dy: 0, width: widths[at] }));
  const boxes = pieces(count, edges).map((piece) => {
    const own = new Set(piece);
    settle(piece.map((at) => nodes[at]), edges.filter(([from]) => own.has(from)).map(([from, to]) => [nodes[from], nodes[to]]));
    return boxed(apart(lying(piece.map((at) => nodes[at]))));
  });
  shelve(boxes, shape);
  return nodes;
}

function pieces(count, edges) {
  const group = Array.from({ length: count }, (_, at) => at);
  const head = (at) => (group[at] === at ? at : (group[at] = head(group[at])));
  for (const [from, to] of edges) group[head(from)] = head(to);
  const found = new Map();
  for (let at = 0; at < count; at += 1) found.set(head(at), [...(found.get(head(at)) ?? []), at]);
  return [...found.values()].sort((a, b) => b.length - a.length);
}

function settle(nodes, edges) {
  nodes.forEach((node, at) => {
    const angle = at * 2.399963; // the golden angle spreads them without a pattern
    node.x = NEAR * 0.5 * Math.sqrt(at) * Math.cos(angle);
    node.y = NEAR * 0.5 * Math.sqrt(at) * Math.sin(angle);
  });
  for (let round = 0; round < ROUNDS; round += 1) {
    const heat = NEAR * 0.4 * (1 - round / ROUNDS) ** 2 + 0.3;
    for (const node of nodes) {
      node.dx = -node.x * 0.02;
      node.dy = -node.y * 0.02;
    }
    push(nodes);
    for (const [from, to] of edges) move(from, to, -Math.hypot(from.x - to.x, from.y - to.y) / NEAR / 2);
    for (const node of nodes) {
      const far = Math.hypot(node.dx, node.dy) || 1;
      node.x += (node.dx / far) * Math.min(far, heat);
      node.y += (node.dy / far) * Math.min(far, heat);
    }
  }
}

function push(nodes) {
  for (let a = 0; a < nodes.length; a += 1) {
    for (let b = a + 1; b < nodes.length; b += 1) {
      const [x, y] = [nodes[a].x - nodes[b].x, nodes[a].y - nodes[b].y];
      move(nodes[a], nodes[b], (NEAR * NEAR) / (x * x + y * y + 1) / 2);
    }
  }
}

function move(a, b, force) {
  const [x, y] = [a.x - b.x || 0.01, a.y - b.y || 0.01];
  a.dx += x * force;
  a.dy += y * force;
  b.dx -= x * force;
  b.dy -= y * force;
}

/** Rotates the component so that it is wider than high. */
function lying(nodes) {
  const sums = { xx: 0, xy: 0, yy: 0 };
  for (const { x, y } of nodes) {
    sums.xx += x * x;
    sums.xy += x * y;
    sums.yy += y * y;
  }
  const angle = Math.atan2(2 * sums.xy, sums.xx - sums.yy) / 2;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  for (const node of nodes) [node.x, node.y] = [node.x * cos + node.y * sin, node.y * cos - node.x * sin];
  return nodes;
}

/** Moves nodes until no label covers another one. */
function apart(nodes) {
  if (nodes.length === 2) {
    const middle = (nodes[0].width + nodes[1].width) / 4 + GAP; // side by side
    [nodes[0].y, nodes[1].y] = [0, 0];
    nodes[0].x = Math.sign(nodes[0].x - nodes[1].x || 1) * middle;
    nodes[1].x = -nodes[0].x;
  }
  for (let round = 0; round < UNTANGLING; round += 1) {
    let moved = false;
    for (let a = 0; a < nodes.length; a += 1) {
      for (let b = a + 1; b < nodes.length; b += 1) moved = separate(nodes[a], nodes[b]) || moved;
    }
    if (!moved) break;
  }
  return nodes;
}

function separate(a, b) {
  const across = (a.width + b.width) / 2 - Math.abs(a.x - b.x);
  const down = LABEL_HEIGHT - Math.abs(a.y - b.y);
  if (across <= 0 || down <= 0) return false;
  if (down <= across) {
    const by = ((a.y <= b.y ? -1 : 1) * (down + 1)) / 2;
    a.y += by;
    b.y -= by;
  } else {
    const by = ((a.x <= b.x ? -1 : 1) * (across + 1)) / 2;
    a.x += by;
    b.x -= by;
  }
  return true;
}

function boxed(nodes) {
  const ys = nodes.map((node) => node.y);
  const [left, top] = [Math.min(...nodes.map((node) => node.x - node.width / 2)), Math.min(...ys)];
  const right = Math.max(...nodes.map((node) => node.x + node.width / 2));
  return { nodes, left, top, width: right - left + GAP, height: Math.max(...ys) - top + MARGIN };
}

function shelve(boxes, shape) {
  const area = boxes.reduce((sum, box) => sum + box.width * box.height, 0);
  const widest = Math.max(Math.sqrt(area * shape) * 1.08, ...boxes.map((box) => box.width));
  let [x, y, tall] = [0, 0, 0];
  for (const box of boxes) {
    if (x + box.width > widest && x > 0) [x, y, tall] = [0, y + tall, 0];
    for (const node of box.nodes) {
      node.x += x - box.left + GAP / 2;
      node.y += y - box.top + MARGIN / 2;
    }
    x += box.width;
    tall = Math.max(tall, box.height);
  }
}
