import { createHash, randomUUID } from 'node:crypto';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { OPERATOR } from '@interlude/protocol/commands';
import { cutText } from '@interlude/protocol/cut-text';
import { fieldsOf, isObject, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { CommandOutcome } from '../commands/seen-commands';
import type { Cursor } from '../outbox/statements';
import type { CommandOf, SourceContext } from './source';

/**
 * What the person who starts a runner says to its agent with `--prompt`: a message of the operator’s like any other, said
 * by the runner itself, so that it needs no server.
 *
 * Ordering: the session’s log has it before the agent does.
 * Failure: that it was told, and that the agent has it, is stored. A runner that follows a kill tells it no second time
 * and hands it over as one that was begun (`again`); one that is started again for the same session with the same text
 * does nothing.
 */
export interface FirstMessage {
  sessionId: string;
  text: string;
}

export interface FirstMessageOptions {
  context: Pick<SourceContext, 'cursors' | 'emit' | 'log'>;
  say: (command: CommandOf<'message'>, again: boolean) => Promise<CommandOutcome>;
  now?: () => number;
}

interface StoredMessage {
  messageId: string;
  /** Of the text: with another one it is another message. */
  digest: string;
  isTaken: boolean;
}

/** Longer than anybody waits for it. */
const EXPIRY_MS = 7 * 24 * 60 * 60_000;

/** Resolves once the agent has it, or will not take it. Never rejects. */
export async function deliverFirstMessage(asked: FirstMessage, options: FirstMessageOptions): Promise<void> {
  const { context, say, now = Date.now } = options;
  const { sessionId, text } = asked;
  const name = `first-message:${sessionId}`;
  const cursor = (kept: StoredMessage): Cursor => ({ name, value: JSON.stringify(kept) });
  const digest = createHash('sha256').update(text).digest('base64url');
  try {
    const before = parseStored((await context.cursors(name)).get(name));
    const isAgain = before?.digest === digest;
    if (isAgain && before.isTaken) return context.log('info', 'what --prompt says was said in this session before');
    const message = isAgain ? before : { messageId: randomUUID(), digest, isTaken: false };
    const { messageId } = message;
    const at = now();
    if (!isAgain) await context.emit(sessionId, messageEvents(messageId, text, at), [cursor(message)]);
    const about = { id: messageId, type: 'message' as const, sessionId, createdAt: at, expiresAt: at + EXPIRY_MS };
    const outcome = await say({ ...about, body: { messageId, text, from: OPERATOR } }, isAgain);
    if (mayHaveArrived(outcome)) {
      await context.emit(sessionId, [], [cursor({ ...message, isTaken: true })]);
      return context.log('warn', `what --prompt says is not said again: ${outcome.reason}`);
    }
    if (outcome.state === 'failed') throw new Error(outcome.reason ?? 'it did not say why');
    await context.emit(sessionId, [], [cursor({ ...message, isTaken: true })]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    context.log('warn', `the agent did not take what --prompt says: ${why}; the next run tries again`);
  }
}

/** What may have arrived is not said a second time: a person has to look first. */
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
 * What an agent has to know of the workspace that was made for it: which paths there are no files of its own, but links
 * into the main checkout. From INTERLUDE_WORKSPACE, which whoever makes the workspace sets:
 * `{"mode":"worktree","deps":"symlink","symlinks":["node_modules",{"path":".env"}]}`.
 */
interface WorkspaceNote {
  /** For the agent, before its first message. Null if there is nothing to say. */
  text: string | null;
  /** What is wrong with the variable, in a sentence. */
  problem: string | null;
}

const MOST_LENGTH = 256 * 1024;
const MOST_PATHS = 50;
const LONGEST_PATH = 200;
const LONGEST_WORD = 40;
const NOTHING: WorkspaceNote = { text: null, problem: null };
const SHAPE = 'it is a JSON object as {"mode":"…","deps":"…","symlinks":["…"]}';

/** Never throws, whatever the variable holds. */
export function workspaceNote(variable: string | undefined): WorkspaceNote {
  if (variable === undefined || variable.trim() === '') return NOTHING;
  if (variable.length > MOST_LENGTH) return invalid(`longer than ${MOST_LENGTH} characters`);
  const said = parseJson(variable);
  if (!isObject(said)) return invalid('not a JSON object');
  const { mode, deps, symlinks } = said;
  if (symlinks !== undefined && !Array.isArray(symlinks)) return invalid('without a list as its "symlinks"');
  const links = listOf(symlinks);
  const paths = links.flatMap((link) => textOf(link) ?? textOf(fieldsOf(link).path) ?? []);
  const odd = links.length - paths.length;
  const problem = odd === 0 ? null : `${odd} of the "symlinks" in INTERLUDE_WORKSPACE are no paths; ${SHAPE}`;
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
    'Whatever you write, move or delete below them, you change in the main checkout, where others work. Leave them as they are, or put a copy in the place of a link before you change what it leads to.',
  ].join('\n');
}

function word(name: string, value: unknown): string[] {
  const text = textOf(value);
  return text === null ? [] : [`${name}: ${oneLine(text, LONGEST_WORD)}`];
}

/** As JSON has it: nothing in a path can pass for words of the note. */
function oneLine(text: string, most: number): string {
  return JSON.stringify(text.length > most ? `${cutText(text, most)}…` : text);
}

function invalid(how: string): WorkspaceNote {
  return { text: null, problem: `INTERLUDE_WORKSPACE is ${how}, and the agent is told nothing of it; ${SHAPE}` };
}
