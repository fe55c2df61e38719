import { type Node, parseTree } from 'jsonc-parser';

/** The hooks Interlude listens to. @see Claude Code's settings, `hooks` */
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

/** Ends every command of ours, so that they can be recognised whatever the path before it. */
const MARK = '# interlude-hook';
/** Seconds. The script ends within two; this allows for an overloaded machine. */
const TIMEOUT_S = 10;
/** Between what a hook waits for an answer and what it may take: the agent must not be the one that ends it. */
const SPARE_S = 15;

export class SettingsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SettingsError';
  }
}

/**
 * What a settings file says for one event. `exec`, so that the script's parent is Claude Code itself; silent where the
 * script is gone, because a hook that fails is told to people.
 */
export function hookCommand(script: string, event: string, dataDir: string, withinS: number | null = null): string {
  const [file, folder] = [quoted(script), quoted(dataDir)];
  const patience = withinS === null ? '' : ` ${withinS}`;
  return `if [ -r ${file} ]; then exec sh ${file} ${event} ${folder}${patience}; fi; exit 0 ${MARK}`;
}

/** One hook of ours, as the settings have it. */
export interface HookEntry {
  command: string;
  /** Seconds. */
  timeout: number;
}

/** @param permissionsWithinS how long the hook that tells of a permission waits for an answer; null: not at all */
export function hookEntries(script: string, dataDir: string, permissionsWithinS: number | null = null) {
  return (event: string): HookEntry => {
    const withinS = event === 'PermissionRequest' ? permissionsWithinS : null;
    const command = hookCommand(script, event, dataDir, withinS);
    return { command, timeout: withinS === null ? TIMEOUT_S : withinS + SPARE_S };
  };
}

/**
 * The settings with our hooks in them, each behind those that are there. Ours of an earlier installation are replaced;
 * what is not ours stays as it is, byte for byte.
 *
 * @throws SettingsError when the text is not JSON, or when its `hooks` are not as Claude Code has them
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
 * The settings without our hooks, and without the lists that were made for them.
 *
 * @param before the settings as they were: a list that was empty then is not ours to remove
 * @throws SettingsError
 */
export function withoutHooks(text: string, before: string | null = null): string {
  const was = before === null ? undefined : parse(before);
  let next = text;
  for (const event of eventsOf(parse(text))) {
    const left = withoutOurs(next, event);
    const isForOurs = left !== next && (was === undefined || listOf(was, event) === undefined);
    next = isForOurs ? withoutEmpty(left, member(parse(left), 'hooks'), event) : left;
  }
  return next === text || member(was, 'hooks') !== undefined ? next : withoutEmpty(next, parse(next), 'hooks');
}

export function hasHooks(text: string): boolean {
  const root = parse(text);
  return eventsOf(root).some((event) => ownHooks(listOf(root, event)).length > 0);
}

interface OwnHook {
  /** Where it stands, and how many are there. */
  hooks: Node;
  at: number;
  /** Which group of its event that is. */
  group: number;
  command: Node;
  timeout: Node | undefined;
}

/** Somebody may have moved ours into a group with theirs. */
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

/** The text without a member that holds nothing. */
function withoutEmpty(text: string, holder: Node | undefined, key: string): string {
  if (holder === undefined || member(holder, key)?.children?.length !== 0) return text;
  const at = holder.children?.findLastIndex((one) => one.children?.[0]?.value === key) ?? -1;
  return withoutElement(text, holder, at);
}

function listOf(root: Node, event: string): Node | undefined {
  const list = member(member(root, 'hooks'), event);
  if (list === undefined || list.type === 'array') return list;
  throw new SettingsError(`has no list as hooks.${event}`);
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
 * Changes one place of a JSON text, so that every other byte stays as it was. The library's own `modify` formats what is
 * around the change as well, or nothing.
 */

/** @throws SyntaxError when the text is not JSON: neither comments nor a trailing comma are */
function parseJsonText(text: string): Node {
  JSON.parse(text);
  return parseTree(text) as Node;
}

function member(node: Node | undefined, key: string): Node | undefined {
  if (node?.type !== 'object') return undefined;
  // The last of several is the one that counts, as it does for JSON.parse.
  return node.children?.findLast((one) => one.children?.[0]?.value === key)?.children?.[1];
}

function items(node: Node | undefined): Node[] {
  return (node?.type === 'array' && node.children) || [];
}

/** The text with one more value at the end of a list or of an object. @param key its name in an object */
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

/** The text without one element, and without what `withElement` put around it. */
function withoutElement(text: string, { offset, children = [] }: Node, index: number): string {
  const [before, gone, after] = [children[index - 1], children[index], children[index + 1]];
  if (gone === undefined) return text;
  if (before !== undefined) return splice(text, endOf(before), endOf(gone), '');
  if (after !== undefined) return splice(text, gone.offset, after.offset, '');
  const closing = `\n${lineIndent(text, offset)}`;
  const end = endOf(gone) + (text.startsWith(closing, endOf(gone)) ? closing.length : 0);
  return splice(text, offset + 1, end, '');
}

/** The text with another value in the place of one. */
function withValue(text: string, node: Node, value: unknown): string {
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
