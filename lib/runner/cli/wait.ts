import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import { type ControlFile, controlPath, HOOKS_CONTROL, readControlFile } from '../host/control-file';
import { agentCommand, interludeCommand } from '../host/own-program.mjs';
import { ancestors } from '../mcp/forward-call';
import { CliError, type Command, EXIT, type ExitCode, readFlags, TEXT, usageError } from './command';
import { openDataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand(['wait'])} [--for S]

For an agent in a terminal to start, in the background, before it comes to rest: waits for a message from the dashboard,
prints it and ends. Claude Code wakes when a background command ends, and reads what it printed. So an idle terminal can
be written to. Its companion has to run: ${interludeCommand(['runner', 'hooks'])}
The companion tells agents of this once, as they come to rest; that they may start it unasked, a permission says:
  Bash(${agentCommand(['wait'])})

  --for S   seconds to wait at most; default 3600

A message is handed over once: to this, or at the end of a running turn. What this was handed and has not printed is
given back.

Exit codes: 0 a message was printed, 1 failed, 2 usage, 124 the time is over and no message came.`;

const FOR_S = 3_600;
const LONGEST_S = 86_400;

export const command: Command = { help: HELP, run: wait };

async function wait(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { values, positionals } = readFlags('wait', argv, { for: TEXT }, env);
  if (positionals.length > 0) throw usageError('it takes options only', 'wait');
  const seconds = Number(values.for ?? FOR_S);
  if (!(seconds > 0 && seconds <= LONGEST_S)) {
    throw usageError(`--for is a number of seconds, at most ${LONGEST_S}`, 'wait');
  }
  const parent = process.ppid;
  const listened = await listen({
    controlFile: env.INTERLUDE_CONTROL ?? controlPath(openDataDir(env), env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL),
    pids: await ancestors(),
    forMs: seconds * 1_000,
    show: (text) => new Promise((shown) => process.stdout.write(`${text}\n`, () => shown())),
    isWanted: () => process.ppid === parent,
  });
  if (listened.kind === 'failed') throw new CliError(EXIT.failed, `no message can be waited for: ${listened.reason}`);
  if (listened.kind === 'shown') return EXIT.done;
  process.stdout.write('No message came in this time. Start this again only if you still want to be reached.\n');
  return EXIT.nothingCame;
}

/**
 * What a command of the agent's does that listens for a message: it asks the companion again and again, each time for a
 * while, until there is one.
 *
 * Ordering: a message is shown before the companion is told that it was.
 * Failure: a companion that is started anew is found again, and asked, and told. Where it stays away too long, where the
 * agent is gone, and when the time is over, this ends without a message.
 */
interface ListenOptions {
  controlFile: string;
  /** The agent's process is one of these, the nearest first. */
  pids: readonly number[];
  /** How long it listens at most. */
  forMs: number;
  /** Shows the message to the agent. Resolves once it is out. */
  show: (text: string) => Promise<void>;
  /** Whether the agent still runs. */
  isWanted: () => boolean;
  now?: () => number;
  /** How long the companion may be away. */
  awayMs?: number;
}

type Listened = { kind: 'shown' } | { kind: 'nothing' } | { kind: 'failed'; reason: string };

/** Shorter than whatever gives up on an answer that does not come. */
const ASK_MS = 30_000;
const LOOK_MS = 500;
const AWAY_MS = 60_000;
const TELL_MS = 10_000;
/** The companion was there, and ended before it answered. */
const CUT_OFF: Fields = {};

async function listen(options: ListenOptions): Promise<Listened> {
  const { pids, forMs, show, isWanted, now = Date.now, awayMs = AWAY_MS } = options;
  const waitId = randomUUID();
  const endsAt = now() + forMs;
  let heardAt: number | null = null;
  while (now() < endsAt) {
    if (!isWanted()) return { kind: 'failed', reason: 'the agent that started this is gone' };
    const within = Math.max(1, Math.ceil(Math.min(ASK_MS, endsAt - now()) / 1_000));
    const query = `pid=${pids.join(',')}&id=${waitId}&within=${within}`;
    const answer = await ask(options.controlFile, `/wait?${query}`, within * 1_000 + LOOK_MS * 10);
    const { kind, text, claim, reason, error } = answer ?? {};
    if (kind === 'message' && typeof text === 'string') {
      await show(text);
      await tellShown(options.controlFile, String(claim), now);
      return { kind: 'shown' };
    }
    if (answer !== null) heardAt = now();
    if (kind === 'again') continue;
    if (answer !== null && answer !== CUT_OFF)
      return { kind: 'failed', reason: textOf(reason) ?? textOf(error) ?? 'the companion refused' };
    if (heardAt === null)
      return {
        kind: 'failed',
        reason: `the companion of terminals is not running; start it: ${interludeCommand(['runner', 'hooks'])}`,
      };
    if (now() - heardAt > awayMs) return { kind: 'failed', reason: 'the companion of terminals is not there any more' };
    await pause(LOOK_MS);
  }
  return { kind: 'nothing' };
}

/** A companion that does not know of it any more has been told by somebody else, or gives the message again. */
async function tellShown(controlFile: string, claim: string, now: () => number): Promise<void> {
  const until = now() + TELL_MS;
  for (;;) {
    const answer = await ask(controlFile, `/wait/taken?claim=${encodeURIComponent(claim)}`, TELL_MS);
    if ((answer !== null && answer !== CUT_OFF) || now() > until) return;
    await pause(LOOK_MS);
  }
}

/** @returns null where nobody listens */
async function ask(controlFile: string, path: string, withinMs: number): Promise<Fields | null> {
  const control = await readControlFile(controlFile);
  if (control === null) return null;
  try {
    return fieldsOf(parseJson(await post(control, path, withinMs)));
  } catch (error) {
    return fieldsOf((error as Error).cause).code === 'ECONNREFUSED' ? null : CUT_OFF;
  }
}

async function post({ url, secret }: ControlFile, path: string, withinMs: number): Promise<string> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}` },
    signal: AbortSignal.timeout(withinMs),
  });
  return await response.text();
}
