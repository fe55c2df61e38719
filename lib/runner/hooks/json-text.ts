import { type Node, parseTree } from 'jsonc-parser';

/**
 * Changes one place of a JSON text, so that every other byte stays as it was. The library's own `modify` formats what is
 * around the change as well, or nothing.
 */

/** @throws SyntaxError when the text is not JSON: neither comments nor a trailing comma are */
export function parseJsonText(text: string): Node {
  JSON.parse(text);
  return parseTree(text) as Node;
}

export function member(node: Node | undefined, key: string): Node | undefined {
  if (node?.type !== 'object') return undefined;
  // The last of several is the one that counts, as it does for JSON.parse.
  return node.children?.findLast((one) => one.children?.[0]?.value === key)?.children?.[1];
}

export function items(node: Node | undefined): Node[] {
  return (node?.type === 'array' && node.children) || [];
}

/** The text with one more value at the end of a list or of an object. @param key its name in an object */
export function withElement(text: string, { offset, length, children }: Node, value: unknown, key?: string): string {
  const name = key === undefined ? '' : JSON.stringify(key);
  const last = children?.at(-1);
  if (last !== undefined && !text.slice(offset, offset + length).includes('\n')) {
    return splice(text, endOf(last), endOf(last), `, ${name}${name && ':'}${JSON.stringify(value)}`);
  }
  const outer = lineIndent(text, offset);
  const inner = outer + indentOf(text);
  const element = `${name}${name && ': '}${JSON.stringify(value, null, indentOf(text))}`.replaceAll('\n', `\n${inner}`);
  if (last !== undefined) return splice(text, endOf(last), endOf(last), `,\n${inner}${element}`);
  return splice(text, offset + 1, offset + 1, `\n${inner}${element}\n${outer}`);
}

/** The text without one element, and without what `withElement` put around it. */
export function withoutElement(text: string, { offset, children = [] }: Node, index: number): string {
  const [before, gone, after] = [children[index - 1], children[index], children[index + 1]];
  if (gone === undefined) return text;
  if (before !== undefined) return splice(text, endOf(before), endOf(gone), '');
  if (after !== undefined) return splice(text, gone.offset, after.offset, '');
  const closing = `\n${lineIndent(text, offset)}`;
  const end = endOf(gone) + (text.startsWith(closing, endOf(gone)) ? closing.length : 0);
  return splice(text, offset + 1, end, '');
}

/** The text with another value in the place of one. */
export function withValue(text: string, node: Node, value: unknown): string {
  return splice(text, node.offset, endOf(node), JSON.stringify(value));
}

/** What a level of the text is indented by. */
function indentOf(text: string): string {
  return /^[{[][^\S\n]*\n([ \t]+)\S/.exec(text.trimStart())?.[1] ?? '  ';
}

function lineIndent(text: string, at: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', at - 1) + 1, at))?.[0] ?? '';
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function splice(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
}
