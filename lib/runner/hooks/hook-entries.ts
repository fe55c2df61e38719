import { indentOf, type JsonNode, jsonValue, member, parseJsonText, withElement, withoutElement } from './json-text';

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

/** Ends every command of ours: how they are known again, whatever has become of the path before it. */
const MARK = '# interlude-hook';
/** The script ends within two; this is for a machine that is out of breath. Seconds. */
const TIMEOUT_S = 10;

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
export function hookCommand(script: string, event: string, dataDir: string): string {
  const [file, folder] = [quoted(script), quoted(dataDir)];
  return `if [ -r ${file} ]; then exec sh ${file} ${event} ${folder}; fi; exit 0 ${MARK}`;
}

/**
 * The settings with our hooks in them, each behind those that are there. Ours of an earlier installation are replaced;
 * what is not ours stays as it is, byte for byte.
 *
 * @throws SettingsError when the text is not JSON, or when its `hooks` are not as Claude Code has them
 */
export function withHooks(text: string, command: (event: string) => string): string {
  const indent = indentOf(text);
  let next = text;
  for (const event of HOOK_EVENTS) {
    const own = ownCommand(next, event);
    const said = JSON.stringify(command(event));
    if (own !== null) next = next.slice(0, own.start) + said + next.slice(own.end);
    else
      next = withEntry(
        next,
        event,
        { hooks: [{ type: 'command', command: command(event), timeout: TIMEOUT_S }] },
        indent,
      );
  }
  return next;
}

/** The settings without our hooks, and without the lists that were made for them. @throws SettingsError */
export function withoutHooks(text: string, before: string | null = null): string {
  const was = before === null ? null : parse(before);
  let next = text;
  for (const event of Object.keys(eventsOf(parse(next)))) {
    next = withoutOurs(next, event);
    const root = parse(next);
    const list = listOf(root, event);
    // A list that was empty before us is not ours to remove.
    const wasEmpty = was !== null && listOf(was, event) !== undefined;
    if (list?.items.length === 0 && text !== next && hadOurs(text, event) && !wasEmpty) {
      next = withoutMember(next, ['hooks'], event);
    }
  }
  const hooks = member(parse(next), 'hooks');
  const wasThere = was !== null && member(was, 'hooks') !== undefined;
  const isEmpty = hooks?.kind === 'object' && hooks.members.length === 0;
  return isEmpty && text !== next && !wasThere ? withoutMember(next, [], 'hooks') : next;
}

export function hasHooks(text: string): boolean {
  const root = parse(text);
  return Object.keys(eventsOf(root)).some((event) => hadOurs(text, event));
}

/** Where the command of our hook stands, if it is there. */
function ownCommand(text: string, event: string): JsonNode | null {
  const groups = listOf(parse(text), event)?.items ?? [];
  const hooks = groups.flatMap((group) => {
    const its = member(group, 'hooks');
    return its?.kind === 'array' ? its.items : [];
  });
  const own = hooks.find((hook) => isOurs(jsonValue(text, hook)));
  return (own && member(own, 'command')) ?? null;
}

function withEntry(text: string, event: string, entry: object, indent: string): string {
  const root = parse(text);
  const hooks = member(root, 'hooks');
  const list = listOf(root, event);
  const pretty = (value: unknown) => JSON.stringify(value, null, indent);
  if (list !== undefined) return withElement(text, list, pretty(entry), indent);
  if (hooks?.kind === 'object') return withElement(text, hooks, `"${event}": ${pretty([entry])}`, indent);
  if (root.kind !== 'object') throw new SettingsError('is no JSON object');
  return withElement(text, root, `"hooks": ${pretty({ [event]: [entry] })}`, indent);
}

function withoutOurs(text: string, event: string): string {
  for (let next = text; ; ) {
    const list = listOf(parse(next), event);
    const place = list?.items.flatMap((group, at) => {
      const its = member(group, 'hooks');
      const items = its?.kind === 'array' ? its.items : [];
      const own = items.findIndex((hook) => isOurs(jsonValue(next, hook)));
      return own < 0 || its?.kind !== 'array' ? [] : [{ group: at, its, own, alone: items.length === 1 }];
    })[0];
    if (list === undefined || place === undefined) return next;
    // Somebody may have moved ours into a group with theirs.
    next = place.alone ? withoutElement(next, list, place.group) : withoutElement(next, place.its, place.own);
  }
}

function withoutMember(text: string, path: string[], key: string): string {
  const holder = path.reduce<JsonNode | undefined>((node, name) => node && member(node, name), parse(text));
  if (holder?.kind !== 'object') return text;
  return withoutElement(
    text,
    holder,
    holder.members.findLastIndex((one) => one.key === key),
  );
}

function hadOurs(text: string, event: string): boolean {
  return ownCommand(text, event) !== null;
}

function isOurs(hook: unknown): boolean {
  const { command } = (hook ?? {}) as { command?: unknown };
  return typeof command === 'string' && command.trimEnd().endsWith(MARK);
}

function listOf(root: JsonNode, event: string) {
  const list = eventsOf(root)[event];
  if (list !== undefined && list.kind !== 'array')
    throw new SettingsError(`has something else than a list as hooks.${event}`);
  return list;
}

function eventsOf(root: JsonNode): Record<string, JsonNode> {
  if (root.kind !== 'object') throw new SettingsError('is no JSON object');
  const hooks = member(root, 'hooks');
  if (hooks === undefined) return {};
  if (hooks.kind !== 'object') throw new SettingsError('has something else than an object as hooks');
  return Object.fromEntries(hooks.members.map(({ key, value }) => [key, value]));
}

function parse(text: string): JsonNode {
  try {
    return parseJsonText(text);
  } catch (error) {
    throw new SettingsError(`is not JSON (${(error as Error).message})`);
  }
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
