/**
 * A JSON text with the places of its values, so that one value can be changed and every other byte stays as it was.
 */
export type JsonNode = JsonObject | JsonArray | JsonScalar;

interface Span {
  /** Offsets in the text; `end` is behind the last character. */
  start: number;
  end: number;
}
export interface JsonObject extends Span {
  kind: 'object';
  members: { key: string; start: number; value: JsonNode }[];
}
export interface JsonArray extends Span {
  kind: 'array';
  items: JsonNode[];
}
export interface JsonScalar extends Span {
  kind: 'scalar';
  value: unknown;
}

/** @throws SyntaxError when the text is not JSON */
export function parseJsonText(text: string): JsonNode {
  // The reader below trusts its text; this is who says what is wrong with it.
  JSON.parse(text);
  let at = 0;
  return value();

  function value(): JsonNode {
    space();
    const start = at;
    if (text[at] === '{') {
      const members: JsonObject['members'] = [];
      list('}', () => {
        const from = at;
        const key = JSON.parse(scalar()) as string;
        space();
        at += 1;
        members.push({ key, start: from, value: value() });
      });
      return { kind: 'object', start, end: at, members };
    }
    if (text[at] === '[') {
      const items: JsonNode[] = [];
      list(']', () => items.push(value()));
      return { kind: 'array', start, end: at, items };
    }
    return { kind: 'scalar', start, value: JSON.parse(scalar()), end: at };
  }

  function list(close: string, item: () => void): void {
    at += 1;
    space();
    while (text[at] !== close) {
      item();
      space();
      if (text[at] === ',') at += 1;
      space();
    }
    at += 1;
  }

  function scalar(): string {
    const start = at;
    if (text[at] === '"') {
      for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
      at += 1;
    } else while (at < text.length && !/[\s,\]}]/.test(text[at] as string)) at += 1;
    return text.slice(start, at);
  }

  function space(): void {
    while (at < text.length && /\s/.test(text[at] as string)) at += 1;
  }
}

export function member(node: JsonNode, key: string): JsonNode | undefined {
  // The last of several is the one that counts, as it does for JSON.parse.
  return node.kind === 'object' ? node.members.findLast((one) => one.key === key)?.value : undefined;
}

export function jsonValue(text: string, node: JsonNode): unknown {
  return JSON.parse(text.slice(node.start, node.end));
}

/** The text with one more element at the end of a list or of an object. @param element as it stands in the text */
export function withElement(text: string, list: JsonObject | JsonArray, element: string, indent: string): string {
  const outer = lineIndent(text, list.start);
  const isOneLine = !text.slice(list.start, list.end).includes('\n');
  const children = list.kind === 'object' ? list.members.map(({ value }) => value) : list.items;
  const last = children.at(-1);
  const shifted = (by: string) => element.replaceAll('\n', `\n${by}`);
  if (last === undefined) {
    const inner = outer + indent;
    return splice(text, list.start + 1, list.start + 1, `\n${inner}${shifted(inner)}\n${outer}`);
  }
  if (isOneLine) {
    const flat = JSON.stringify(JSON.parse(list.kind === 'object' ? `{${element}}` : `[${element}]`));
    return splice(text, last.end, last.end, `, ${flat.slice(1, -1)}`);
  }
  const inner = outer + indent;
  return splice(text, last.end, last.end, `,\n${inner}${shifted(inner)}`);
}

/** The text without one element, and without what `withElement` put around it. */
export function withoutElement(text: string, list: JsonObject | JsonArray, index: number): string {
  const spans: Span[] =
    list.kind === 'object' ? list.members.map(({ start, value }) => ({ start, end: value.end })) : list.items;
  const [before, gone, after] = [spans[index - 1], spans[index], spans[index + 1]];
  if (gone === undefined) return text;
  if (before !== undefined) return splice(text, before.end, gone.end, '');
  if (after !== undefined) return splice(text, gone.start, after.start, '');
  const closing = `\n${lineIndent(text, list.start)}`;
  const end = text.startsWith(closing, gone.end) ? gone.end + closing.length : gone.end;
  return splice(text, list.start + 1, end, '');
}

/** What a level of the text is indented by. */
export function indentOf(text: string): string {
  return /^[{[][^\S\n]*\n([ \t]+)\S/.exec(text.trimStart())?.[1] ?? '  ';
}

function lineIndent(text: string, at: number): string {
  const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
  return /^[ \t]*/.exec(line)?.[0] ?? '';
}

function splice(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to);
}
