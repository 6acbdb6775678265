const COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"];
const SHAPES = ["svg", "line", "path", "text", "rect", "circle", "title", "g"];
const get = (id) => document.getElementById(id);

function element(name, attributes, text) {
  const svg = SHAPES.includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const quantile = (sorted, q) => {
  const at = q * (sorted.length - 1), k = Math.floor(at);
  return sorted[k] + (at - k) * ((sorted[k + 1] ?? sorted[k]) - sorted[k]);
};
