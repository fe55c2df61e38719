import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startAssistant } from '@/lib/runner/demo/assistant';
import { ASSISTANT } from '@/lib/runner/demo/assistant-script';
import { runDemoAgent } from '@/lib/runner/demo/demo-agent';
import { FLEET } from '@/lib/runner/demo/fleet';
import { Rota } from '@/lib/runner/demo/rota';
import { troubleInWords } from '@/lib/runner/logger/delivery-journal';
import { Redactor } from '@/lib/runner/logger/redactor';
import { OutboxLockedError } from '@/lib/runner/outbox/lock';
import type { OutboxStatus } from '@/lib/runner/outbox/outbox';
import { readRecording } from '@/lib/runner/replay/recording';
import { interludeCommand } from '@/lib/runner/shown-command.mjs';
import { loadClaudeSdk } from '@/lib/runner/sources/claude/claude-sdk';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { fired } from './fired';
import { interruptSignal } from './interrupt';
import { fromInterlude, openDataDir, serverEndpoint } from './local-server';
import { logLevelOf } from './log-level';

export const DEMO_HELP = `Usage: ${interludeCommand(['demo'])} [options]

Runs a fleet beside the dashboard until it is stopped. ${FLEET.length} agents replay recordings of real Claude Code runs, one session
after the other; they go the way every agent's events go: adapter, outbox, HTTP. One more, ${ASSISTANT}, takes part: it
answers what you write, and runs what you allow. It is scripted, and needs no key: the real Claude Code with a scripted
model behind it where the Agent SDK is installed, else one that is built in.

  --speed N      1 is as recorded, 2 twice as fast; default 1
  --url URL      the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token T      its token; default: INTERLUDE_TOKEN, else the one of this machine`;

/** So many agents are never at rest: whoever comes by at any time sees some at work. */
const LEAST_AT_WORK = 3;

const recordingsDir = fileURLToPath(new URL('../../../tests/fixtures/recordings/demo', import.meta.url));

export async function demo(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { speed, ...server } = readOptions(argv);
  const home = openDataDir(env);
  const { signal, release } = interruptSignal();
  const stop = new AbortController();
  // Started by `npm start -- --demo`: no demo without its dashboard.
  process.once('disconnect', () => stop.abort());
  // It may have died before we listened.
  if (process.connected === false) stop.abort();
  const ends = AbortSignal.any([signal, stop.signal]);
  const redactor = new Redactor();
  const endpoint = serverEndpoint(server, env, (token) => redactor.learn(token));
  const telling = new TroubleLine();
  try {
    const agents = await Promise.all(
      FLEET.map(async (agent) => ({
        agent,
        recordings: await Promise.all(
          agent.recordings.map((name) => readRecording(join(recordingsDir, `${name}.jsonl`))),
        ),
      })),
    );
    const logLevel = logLevelOf(env);
    const outboxDir = join(home, 'outboxes');
    const logDir = join(home, 'logs');
    const sdkFolder = env.INTERLUDE_CLAUDE_SDK_DIR ? fromInterlude(env.INTERLUDE_CLAUDE_SDK_DIR) : undefined;
    const assistant = await startAssistant({
      dataDir: home,
      installed: await loadClaudeSdk(home, sdkFolder),
      env,
      redactor,
      endpoint,
      speed,
      onStatus: (it) => telling.status(ASSISTANT, it),
      onOver: (reason) => process.stderr.write(`interlude: ${ASSISTANT}: ${reason}\n`),
    });
    const { sessionId } = assistant;
    const rota = new Rota(agents.length, LEAST_AT_WORK);
    const playing = agents.map(async (one) => {
      try {
        const trouble = await runDemoAgent({
          ...one,
          rota,
          instead: { agentId: ASSISTANT, sessionId },
          outboxDir,
          logDir,
          logLevel,
          redactor,
          endpoint,
          speed,
          signal: ends,
          onStatus: (it) => telling.status(one.agent.agentId, it),
        });
        if (trouble !== null) throw new CliError(EXIT.failed, `${one.agent.agentId}: ${trouble}`);
      } catch (error) {
        stop.abort();
        throw error;
      }
    });
    const { url } = await endpoint();
    process.stderr.write(
      `interlude: ${FLEET.length + 1} agents are at work; Ctrl-C stops them. One of them answers: ${url.replace(/\/+$/, '')}/sessions/${sessionId}\n`,
    );
    const leaving = fired(ends).then(() => assistant.close());
    const ended = await Promise.allSettled([...playing, leaving]);
    const failed = ended.find((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
    return signal.aborted ? EXIT.interrupted : EXIT.done;
  } catch (error) {
    if (!(error instanceof OutboxLockedError)) throw error;
    throw new CliError(EXIT.failed, `a demo runs already, as process ${error.pid}`);
  } finally {
    release();
  }
}

/** Says once that the server can't be reached or refuses the token, and once that all agents get through again. */
class TroubleLine {
  readonly #troubled = new Set<string>();

  status(agentId: string, { trouble, state }: OutboxStatus): void {
    // what ends with the dashboard has nothing to complain about
    if (state === 'stopped') return;
    const before = this.#troubled.size;
    if (!trouble) this.#troubled.delete(agentId);
    else this.#troubled.add(agentId);
    if (trouble && before === 0)
      this.#say(`${troubleInWords(trouble)}; the demo goes on, and what waits is sent later`);
    if (before > 0 && this.#troubled.size === 0) this.#say('the dashboard is back');
  }

  #say(message: string): void {
    process.stderr.write(`interlude: ${message}\n`);
  }
}

function readOptions(argv: string[]): { speed: number; url: string | undefined; token: string | undefined } {
  const text = { type: 'string' } as const;
  const parsed = parse();
  const speed = Number(parsed.speed ?? '1');
  if (!(speed > 0 && speed <= 100)) throw usageError('--speed is a number above 0, at most 100', 'demo');
  return { speed, url: parsed.url, token: parsed.token };

  function parse() {
    try {
      return parseArgs({ args: argv, options: { speed: text, url: text, token: text } }).values;
    } catch (error) {
      throw usageError((error as Error).message.split('. ')[0] ?? '', 'demo');
    }
  }
}
