/**
 * Right-to-left rules as an Oxlint plugin. Prose of agents and people runs in the direction of its script, and never
 * changes the order of the words around it. Fields follow what is typed.
 */

/** Names of values that are prose. */
const PROSE = /(reason|message|summary|detail|failure|title|description|warning|trouble|words)(\(.*\))?(\.trim\(\))?$/i;
/** Types of fields without text, or with text in Latin letters. */
const UNDIRECTED = new Set([
  'checkbox',
  'radio',
  'file',
  'number',
  'time',
  'datetime-local',
  'hidden',
  'url',
  'email',
  'password',
]);

/** @typedef {any} Node A node of ESTree, or the rule's context */

/** @param {Node} element */
const nameOf = (element) => element.name.name;
/** @param {Node} element @param {string} name */
const attributeOf = (element, name) =>
  element.attributes.find((/** @type {Node} */ one) => one.type === 'JSXAttribute' && one.name.name === name);

/** @param {Node} element */
function isIsolated({ parent }) {
  for (let node = parent.parent; node; node = node.parent) {
    if (node.type !== 'JSXElement') continue;
    if (nameOf(node.openingElement) === 'bdi' || attributeOf(node.openingElement, 'dir') !== undefined) return true;
  }
  return false;
}

/** @param {Node} type the value of the attribute. A computed one chooses between buttons. */
const isUndirected = (type) => type?.expression !== undefined || UNDIRECTED.has(type?.value);

const text = {
  create: (/** @type {Node} */ context) => ({
    JSXOpeningElement(/** @type {Node} */ node) {
      const report = (/** @type {string} */ message) => context.report({ node, message });
      switch (nameOf(node)) {
        case 'Words':
          if (!isIsolated(node)) report('Put <Words> into <bdi> or an element with dir="auto", or use <Phrase>.');
          return;
        case 'Name': {
          const { expression } = attributeOf(node, 'text')?.value ?? {};
          if (expression !== undefined && PROSE.test(context.sourceCode.getText(expression))) {
            report('<Name> is for names. Prose needs <Words> or <Phrase>.');
          }
          return;
        }
        case 'input':
        case 'textarea':
          if (attributeOf(node, 'dir') === undefined && !isUndirected(attributeOf(node, 'type')?.value)) {
            report('Add dir="auto" to the field, or dir="ltr" for code.');
          }
      }
    },
  }),
};

export default { meta: { name: 'direction' }, rules: { text } };
