import { createHash, randomUUID } from 'node:crypto';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { OPERATOR } from '@interlude/protocol/commands';
import { fieldsOf, isObject, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import type { Cursor } from '../outbox/statements';
import type { CommandOutcome } from './seen-commands';
import type { CommandOf, SourceContext } from './source';

export interface FirstMessage {
  sessionId: string;
  text: string;
}

export interface FirstMessageOptions {
  context: Pick<SourceContext, 'cursors' | 'emit' | 'log'>;
  deliver: (command: CommandOf<'message'>, again: boolean) => Promise<CommandOutcome>;
  now?: () => number;
}

interface StoredMessage {
  messageId: string;
  /** Digest of the text, because another text is another message. */
  digest: string;
  isTaken: boolean;
}

const EXPIRY_MS = 7 * 24 * 60 * 60_000;

/**
 * Delivers the `--prompt` message as an operator message. The runner sends it itself, without the server. Resolves once
 * the message is delivered or refused.
 *
 * Ordering: the message is in the session log before the agent gets it.
 * Failure: logging and delivery are both stored. After a kill, the next runner does not log it twice and delivers it
 * with `again`. Starting the same session again with the same text does nothing. Never rejects.
 */
export async function deliverFirstMessage(message: FirstMessage, options: FirstMessageOptions): Promise<void> {
  const { context, deliver, now = Date.now } = options;
  const { sessionId, text } = message;
  const name = `first-message:${sessionId}`;
  const cursor = (stored: StoredMessage): Cursor => ({ name, value: JSON.stringify(stored) });
  const digest = createHash('sha256').update(text).digest('base64url');
  try {
    const before = parseStored((await context.cursors(name)).get(name));
    const isAgain = before?.digest === digest;
    if (isAgain && before.isTaken) return context.log('info', 'the --prompt message was already sent to this session');
    const message = isAgain ? before : { messageId: randomUUID(), digest, isTaken: false };
    const { messageId } = message;
    const at = now();
    if (!isAgain) await context.emit(sessionId, messageEvents(messageId, text, at), [cursor(message)]);
    const about = { id: messageId, type: 'message' as const, sessionId, createdAt: at, expiresAt: at + EXPIRY_MS };
    const outcome = await deliver({ ...about, body: { messageId, text, from: OPERATOR } }, isAgain);
    if (mayHaveArrived(outcome)) {
      await context.emit(sessionId, [], [cursor({ ...message, isTaken: true })]);
      return context.log('warn', `not sending the --prompt message again: ${outcome.reason}`);
    }
    if (outcome.state === 'failed') throw new Error(outcome.reason ?? 'no reason given');
    await context.emit(sessionId, [], [cursor({ ...message, isTaken: true })]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    context.log('warn', `could not deliver the --prompt message: ${why}; the next run retries`);
  }
}

/** True if the message may have arrived. It is then not repeated, and a person has to check. */
function mayHaveArrived({ state, result }: CommandOutcome): boolean {
  return state === 'failed' && fieldsOf(result).mayHaveArrived === true;
}

function messageEvents(messageId: string, text: string, occurredAt: number): TimedEvent[] {
  return [
    { occurredAt, event: { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: OPERATOR.id } },
    { occurredAt, event: { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: text } },
    { occurredAt, event: { type: 'TEXT_MESSAGE_END', messageId } },
  ];
}

function parseStored(stored: string | undefined): StoredMessage | null {
  const { messageId, digest, isTaken } = fieldsOf(parseJson(stored ?? ''));
  const [id, of] = [textOf(messageId), textOf(digest)];
  return id === null || of === null ? null : { messageId: id, digest: of, isTaken: isTaken === true };
}

/**
 * Note for an agent about its workspace: the paths that are symbolic links into the main checkout. Read from
 * INTERLUDE_WORKSPACE, set by the creator of the workspace:
 * `{"mode":"worktree","deps":"symlink","symlinks":["node_modules",{"path":".env"}]}`.
 */
interface WorkspaceNote {
  /** Text for the agent before its first message; null if there is nothing to say. */
  text: string | null;
  /** Reason why the variable is invalid, as a sentence. */
  problem: string | null;
}

const MOST_LENGTH = 256 * 1024;
const MOST_PATHS = 50;
const LONGEST_PATH = 200;
const LONGEST_WORD = 40;
const NOTHING: WorkspaceNote = { text: null, problem: null };
const SHAPE = 'expected a JSON object like {"mode":"…","deps":"…","symlinks":["…"]}';

/** Never throws. */
export function workspaceNote(variable: string | undefined): WorkspaceNote {
  if (variable === undefined || variable.trim() === '') return NOTHING;
  if (variable.length > MOST_LENGTH) return invalid(`longer than ${MOST_LENGTH} characters`);
  const parsed = parseJson(variable);
  if (!isObject(parsed)) return invalid('not a JSON object');
  const { mode, deps, symlinks } = parsed;
  if (symlinks !== undefined && !Array.isArray(symlinks)) return invalid('missing a list in "symlinks"');
  const links = listOf(symlinks);
  const paths = links.flatMap((link) => textOf(link) ?? textOf(fieldsOf(link).path) ?? []);
  const odd = links.length - paths.length;
  const problem = odd === 0 ? null : `${odd} of the "symlinks" in INTERLUDE_WORKSPACE are not paths; ${SHAPE}`;
  return { text: paths.length === 0 ? null : noteText(paths, mode, deps), problem };
}

function noteText(paths: readonly string[], mode: unknown, deps: unknown): string {
  const about = [...word('mode', mode), ...word('dependencies', deps)].join(', ');
  const shown = paths.slice(0, MOST_PATHS).map((path) => `- ${oneLine(path, LONGEST_PATH)}`);
  const more = paths.length - shown.length;
  return [
    `A note on your workspace${about === '' ? '' : ` (${about})`}: it is a checkout of its own, but these untracked paths in it are symbolic links into the main checkout:`,
    ...shown,
    ...(more > 0 ? [`- and ${more} more`] : []),
    'Anything you write, move or delete below them changes the main checkout, where others work. Leave them as they are, or replace a link with a copy before you change its target.',
  ].join('\n');
}

function word(name: string, value: unknown): string[] {
  const text = textOf(value);
  return text === null ? [] : [`${name}: ${oneLine(text, LONGEST_WORD)}`];
}

/** As a JSON string, so that a path can't pass for text of the note. */
function oneLine(text: string, most: number): string {
  return JSON.stringify(text.length > most ? `${truncateText(text, most)}…` : text);
}

function invalid(how: string): WorkspaceNote {
  return { text: null, problem: `INTERLUDE_WORKSPACE is ${how}, and is ignored; ${SHAPE}` };
}
