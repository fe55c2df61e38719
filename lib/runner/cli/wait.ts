import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import { controlPath, HOOKS_CONTROL, readControlFile } from '../host/control-file';
import { agentCommand, interludeCommand } from '../host/own-program.mjs';
import { ancestors } from '../mcp/forward-call';
import { CliError, type Command, EXIT, type ExitCode, readFlags, TEXT, usageError } from './command';
import { openDataDir } from './dashboard';

const HELP = `Usage: ${interludeCommand(['wait'])} [--for S]

Waits for a message from the dashboard, prints it and ends. An agent in a terminal starts it in the background before it
becomes idle. Claude Code wakes up when a background command ends and reads its output, so idle terminals can receive
messages. Needs the companion: ${interludeCommand(['runner', 'hooks'])}
The companion suggests this to each agent once. To allow it without asking, add the permission:
  Bash(${agentCommand(['wait'])})

  --for S   wait at most S seconds; default 3600

Each message is delivered once: here, or at the end of a running turn. A message that can't be printed is returned.

Exit codes: 0 printed a message, 1 failed, 2 usage, 124 no message in time.`;

const DEFAULT_S = 3_600;
const MAX_S = 86_400;

export const command: Command = { help: HELP, run: wait };

async function wait(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { values, positionals } = readFlags('wait', argv, { for: TEXT }, env);
  if (positionals.length > 0) throw usageError('this command takes options only', 'wait');
  const seconds = Number(values.for ?? DEFAULT_S);
  if (!(seconds > 0 && seconds <= MAX_S)) {
    throw usageError(`--for must be a number of seconds, at most ${MAX_S}`, 'wait');
  }
  const parent = process.ppid;
  const outcome = await pollForMessage({
    controlFile: env.INTERLUDE_CONTROL ?? controlPath(openDataDir(env), env.INTERLUDE_CONTROL_NAME ?? HOOKS_CONTROL),
    pids: await ancestors(),
    forMs: seconds * 1_000,
    show: (text) => new Promise((shown) => process.stdout.write(`${text}\n`, () => shown())),
    isAgentRunning: () => process.ppid === parent,
  });
  if (outcome.kind === 'failed') throw new CliError(EXIT.failed, `can't wait for messages: ${outcome.reason}`);
  if (outcome.kind === 'shown') return EXIT.done;
  process.stdout.write(
    'No message arrived in this time. Run this command again only if you still want to receive messages.\n',
  );
  return EXIT.timedOut;
}

interface PollOptions {
  controlFile: string;
  /** The processes above this one, the nearest first. The agent is one of them. */
  pids: readonly number[];
  forMs: number;
  /** Prints the message for the agent. Resolves once it is written. */
  show: (text: string) => Promise<void>;
  isAgentRunning: () => boolean;
}

type PollOutcome = { kind: 'shown' } | { kind: 'nothing' } | { kind: 'failed'; reason: string };

/** Shorter than the idle timeout of any HTTP client. */
const POLL_MS = 30_000;
const RETRY_MS = 500;
/** Longest time for which the companion may be away. */
const AWAY_MS = 60_000;
const CONFIRM_MS = 10_000;
/** The companion closed the connection before it answered. */
const DISCONNECTED: Fields = {};

/**
 * Long-polls the companion for a message.
 *
 * Ordering: a message is printed, then confirmed to the companion.
 * Failure: a restarted companion is found again. Ends without a message when the companion stays away, the agent has
 * ended or the time has passed.
 */
async function pollForMessage(options: PollOptions): Promise<PollOutcome> {
  const { controlFile, pids, forMs, show, isAgentRunning } = options;
  const failed = (reason: string): PollOutcome => ({ kind: 'failed', reason });
  const waitId = randomUUID();
  const endsAt = Date.now() + forMs;
  let lastAnswerAt: number | null = null;
  while (Date.now() < endsAt) {
    if (!isAgentRunning()) return failed('the agent that started this has ended');
    const within = Math.max(1, Math.ceil(Math.min(POLL_MS, endsAt - Date.now()) / 1_000));
    const query = `pid=${pids.join(',')}&id=${waitId}&within=${within}`;
    const answer = await request(controlFile, `/wait?${query}`, within * 1_000 + RETRY_MS * 10);
    const { kind, text, claim, reason, error } = answer ?? {};
    if (kind === 'message' && typeof text === 'string') {
      await show(text);
      await confirmShown(controlFile, String(claim));
      return { kind: 'shown' };
    }
    if (answer !== null) lastAnswerAt = Date.now();
    if (kind === 'again') continue;
    if (answer !== null && answer !== DISCONNECTED) {
      return failed(
        textOf(reason) ?? textOf(error) ?? 'the companion refused the wait without a reason; check its log',
      );
    }
    if (lastAnswerAt === null) {
      const start = interludeCommand(['runner', 'hooks']);
      return failed(`the companion for terminals is not running; start it: ${start}`);
    }
    if (Date.now() - lastAnswerAt > AWAY_MS) return failed('the companion for terminals has ended');
    await pause(RETRY_MS);
  }
  return { kind: 'nothing' };
}

/** Accepts any response: a companion that no longer knows the claim delivers the message again. */
async function confirmShown(controlFile: string, claim: string): Promise<void> {
  const until = Date.now() + CONFIRM_MS;
  for (;;) {
    const answer = await request(controlFile, `/wait/taken?claim=${encodeURIComponent(claim)}`, CONFIRM_MS);
    if ((answer !== null && answer !== DISCONNECTED) || Date.now() > until) return;
    await pause(RETRY_MS);
  }
}

/** @returns null if no companion is running */
async function request(controlFile: string, path: string, timeoutMs: number): Promise<Fields | null> {
  const control = await readControlFile(controlFile);
  if (control === null) return null;
  try {
    const response = await fetch(`${control.url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control.secret}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    return fieldsOf(parseJson(await response.text()));
  } catch (error) {
    return fieldsOf((error as Error).cause).code === 'ECONNREFUSED' ? null : DISCONNECTED;
  }
}
