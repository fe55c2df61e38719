import { type Node, parseTree } from 'jsonc-parser';

/** @see Claude Code's settings, `hooks` */
export const HOOK_EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'Stop',
  'StopFailure',
  'SubagentStart',
  'SubagentStop',
  'PreCompact',
  'PostCompact',
  'Notification',
  'PermissionRequest',
  'SessionEnd',
] as const;

/** Appended to each of our commands, to recognise them whatever their path. */
const MARK = '# interlude-hook';
/** The script ends within two seconds; this allows for an overloaded machine. */
const TIMEOUT_S = 10;
/** Added to the time for which a hook waits, so that the agent never kills it. */
const SPARE_S = 15;

export class SettingsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SettingsError';
  }
}

/**
 * The command for one event. `exec` makes Claude Code the script's parent. Does nothing if the script is missing, because
 * Claude Code shows failed hooks.
 */
export function hookCommand(script: string, event: string, dataDir: string, withinS: number | null = null): string {
  const [file, folder] = [quoted(script), quoted(dataDir)];
  const patience = withinS === null ? '' : ` ${withinS}`;
  return `if [ -r ${file} ]; then exec sh ${file} ${event} ${folder}${patience}; fi; exit 0 ${MARK}`;
}

export interface HookEntry {
  command: string;
  /** Seconds. */
  timeout: number;
}

/** @param permissionsWithinS seconds that PermissionRequest waits for an answer; null: it doesn't wait */
export function hookEntries(script: string, dataDir: string, permissionsWithinS: number | null = null) {
  return (event: string): HookEntry => {
    const withinS = event === 'PermissionRequest' ? permissionsWithinS : null;
    const command = hookCommand(script, event, dataDir, withinS);
    return { command, timeout: withinS === null ? TIMEOUT_S : withinS + SPARE_S };
  };
}

/**
 * Adds our hooks behind existing ones, and replaces those of an earlier installation. Every other byte stays unchanged.
 *
 * @throws SettingsError if the text is not JSON, or its `hooks` are not valid for Claude Code
 */
export function withHooks(text: string, entryOf: (event: string) => HookEntry): string {
  return HOOK_EVENTS.reduce((next: string, event) => withHook(next, event, entryOf(event)), text);
}

function withHook(text: string, event: string, { command, timeout }: HookEntry): string {
  const root = parse(text);
  const list = listOf(root, event);
  const [own] = ownHooks(list);
  if (own !== undefined) {
    const ofTimeout = own.timeout === undefined ? text : withValue(text, own.timeout, timeout);
    const [again] = ownHooks(listOf(parse(ofTimeout), event));
    return again === undefined ? text : withValue(ofTimeout, again.command, command);
  }
  const entry = { hooks: [{ type: 'command', command, timeout }] };
  if (list !== undefined) return withElement(text, list, entry);
  const hooks = member(root, 'hooks');
  if (hooks !== undefined) return withElement(text, hooks, [entry], event);
  return withElement(text, root, { [event]: [entry] }, 'hooks');
}

/**
 * Removes our hooks and the lists created for them.
 *
 * @param before the settings before the installation; lists that were already empty stay
 * @throws SettingsError
 */
export function withoutHooks(text: string, before: string | null = null): string {
  const was = before === null ? undefined : parse(before);
  let next = text;
  for (const event of eventsOf(parse(text))) {
    const remaining = withoutOurs(next, event);
    const isCreatedByUs = remaining !== next && (was === undefined || listOf(was, event) === undefined);
    next = isCreatedByUs ? withoutEmpty(remaining, member(parse(remaining), 'hooks'), event) : remaining;
  }
  return next === text || member(was, 'hooks') !== undefined ? next : withoutEmpty(next, parse(next), 'hooks');
}

export function hasHooks(text: string): boolean {
  const root = parse(text);
  return eventsOf(root).some((event) => ownHooks(listOf(root, event)).length > 0);
}

interface OwnHook {
  /** The list that contains the hook. */
  hooks: Node;
  at: number;
  /** The index of the group in its event. */
  group: number;
  command: Node;
  timeout: Node | undefined;
}

/** Finds our hooks, including those in groups with other hooks. */
function ownHooks(list: Node | undefined): OwnHook[] {
  return items(list).flatMap((group, index) => {
    const hooks = member(group, 'hooks');
    return items(hooks).flatMap((hook, at) => {
      const command = member(hook, 'command');
      const isOurs = typeof command?.value === 'string' && command.value.trimEnd().endsWith(MARK);
      const timeout = member(hook, 'timeout');
      return isOurs && hooks !== undefined ? [{ hooks, at, group: index, command, timeout }] : [];
    });
  });
}

function withoutOurs(text: string, event: string): string {
  for (let next = text; ; ) {
    const list = listOf(parse(next), event);
    const [own] = ownHooks(list);
    if (list === undefined || own === undefined) return next;
    const isAlone = items(own.hooks).length === 1;
    next = isAlone ? withoutElement(next, list, own.group) : withoutElement(next, own.hooks, own.at);
  }
}

/** Removes the member if it is empty. */
function withoutEmpty(text: string, holder: Node | undefined, key: string): string {
  if (holder === undefined || member(holder, key)?.children?.length !== 0) return text;
  const at = holder.children?.findLastIndex((one) => one.children?.[0]?.value === key) ?? -1;
  return withoutElement(text, holder, at);
}

function listOf(root: Node, event: string): Node | undefined {
  const list = member(member(root, 'hooks'), event);
  if (list === undefined || list.type === 'array') return list;
  throw new SettingsError(`has a hooks.${event} value that is not an array`);
}

function eventsOf(root: Node): string[] {
  const names = member(root, 'hooks')?.children?.map((one) => String(one.children?.[0]?.value));
  return [...new Set(names)];
}

/** @throws SettingsError */
function parse(text: string): Node {
  let root: Node;
  try {
    root = parseJsonText(text);
  } catch (error) {
    throw new SettingsError(`is not JSON (${(error as Error).message})`);
  }
  if (root.type !== 'object') throw new SettingsError('is not a JSON object');
  const hooks = member(root, 'hooks');
  if (hooks !== undefined && hooks.type !== 'object') throw new SettingsError('has hooks that are not an object');
  return root;
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}

/**
 * Edits JSON text in one place and keeps every other byte. The library's `modify` would reformat its surroundings.
 */

/** @throws SyntaxError if the text is not strict JSON, without comments and trailing commas */
function parseJsonText(text: string): Node {
  JSON.parse(text);
  return parseTree(text) as Node;
}

function member(node: Node | undefined, key: string): Node | undefined {
  if (node?.type !== 'object') return undefined;
  // The last duplicate counts, as for JSON.parse.
  return node.children?.findLast((one) => one.children?.[0]?.value === key)?.children?.[1];
}

function items(node: Node | undefined): Node[] {
  return (node?.type === 'array' && node.children) || [];
}

/** Appends a value to a list or object. @param key its name in an object */
function withElement(text: string, { offset, length, children }: Node, value: unknown, key?: string): string {
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

/** Removes an element, and the whitespace that `withElement` added. */
function withoutElement(text: string, { offset, children = [] }: Node, index: number): string {
  const [before, removed, after] = [children[index - 1], children[index], children[index + 1]];
  if (removed === undefined) return text;
  if (before !== undefined) return splice(text, endOf(before), endOf(removed), '');
  if (after !== undefined) return splice(text, removed.offset, after.offset, '');
  const closing = `\n${lineIndent(text, offset)}`;
  const end = endOf(removed) + (text.startsWith(closing, endOf(removed)) ? closing.length : 0);
  return splice(text, offset + 1, end, '');
}

function withValue(text: string, node: Node, value: unknown): string {
  return splice(text, node.offset, endOf(node), JSON.stringify(value));
}

/** The indentation of one level. */
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
