import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAssistant } from '../demo/assistant';
import { ASSISTANT } from '../demo/assistant-script';
import { DemoSource } from '../demo/demo-source';
import { type DemoAgent, FLEET } from '../demo/fleet';
import { Rota } from '../demo/rota';
import { isContextRatioEnabled } from '../host/context-ratio';
import { RunnerHost } from '../host/runner-host';
import { Redactor } from '../logger/redactor';
import { Outbox } from '../outbox/outbox';
import { ProcessLockedError } from '../process-lock';
import { type Recording, readRecording } from '../replay/recording';
import { interludeCommand } from '../shown-command.mjs';
import { loadClaudeSdk } from '../sources/claude/claude-sdk';
import type { Command } from './command';
import { endSignals } from './end-signals';
import { CliError, EXIT, type ExitCode, usageError } from './exit';
import { fired } from './fired';
import { readFlags, SERVER_FLAGS, TEXT, TOKEN_HELP } from './flags';
import { fromInterlude, openDataDir, pagesUrl, serverEndpoint } from './local-server';
import { logLevelOf } from './log-level';
import { say } from './say';
import { adviceOnToken, tokenSource } from './token-source';
import { TroubleLine } from './trouble-line';

const HELP = `Usage: ${interludeCommand(['demo'])} [options]

Runs a fleet beside the dashboard until it is stopped. ${FLEET.length} agents replay recordings of real Claude Code runs, one session
after the other; they go the way every agent's events go: adapter, outbox, HTTP. One more, ${ASSISTANT}, takes part: it
answers what you write, and runs what you allow. It is scripted, and needs no key: the real Claude Code with a scripted
model behind it where the Agent SDK is installed, else one that is built in.

  --speed N      1 is as recorded, 2 twice as fast; default 1
  --url URL      the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F ${TOKEN_HELP}`;

/** At least this many agents are always at work, so that there is always something to see. */
const LEAST_AT_WORK = 3;
/** How long the ends of the sessions may take to reach a slow server. */
const GOODBYE_MS = 3_000;

const recordingsDir = fileURLToPath(new URL('../../../tests/fixtures/recordings/demo', import.meta.url));

export const command: Command = { help: HELP, run: demo };

async function demo(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { speed, ...server } = readOptions(argv, env);
  const home = openDataDir(env);
  const { ends: signal, release } = endSignals();
  const stop = new AbortController();
  // Started by `npm start -- --demo`: no demo without its dashboard.
  process.once('disconnect', () => stop.abort());
  // It may have died before we subscribed.
  if (process.connected === false) stop.abort();
  const redactor = new Redactor();
  const endpoint = serverEndpoint(server, env, (token) => redactor.learn(token));
  const telling = new TroubleLine(
    'the demo goes on, and what waits is sent later',
    adviceOnToken(tokenSource(server, env)),
  );
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const recordings = await Promise.all(FLEET.map((agent) => Promise.all(agent.recordings.map(recordingNamed))));
    const sdkFolder = env.INTERLUDE_CLAUDE_SDK_DIR ? fromInterlude(env.INTERLUDE_CLAUDE_SDK_DIR) : undefined;
    const assistant = await startAssistant({
      dataDir: home,
      installed: await loadClaudeSdk(home, sdkFolder),
      env,
      redactor,
      endpoint,
      speed,
      onStatus: (it) => telling.status(ASSISTANT, it),
      onOver: (reason) => say(`${ASSISTANT}: ${reason}`),
    });
    closing.push(() => assistant.close());
    const { sessionId } = assistant;
    const rota = new Rota(FLEET.length, LEAST_AT_WORK);
    const level = logLevelOf(env);
    const start = async (agent: DemoAgent, at: number) => {
      const { agentId } = agent;
      const host = await RunnerHost.open({
        about: { kind: 'claude', source: 'demo', instead: { agentId: ASSISTANT, sessionId } },
        journal: 'recording',
        meanwhile: 'the recording goes on',
        tellsContextRatio: isContextRatioEnabled(env),
        ...{ endpoint, redactor, dataDir: home, level },
        openOutbox: (listeners) => Outbox.open(join(home, 'outboxes', `demo-${agentId}.db`), { agentId, ...listeners }),
        onStatus: (it) => telling.status(agentId, it),
      });
      closing.push(() => host.close(0, GOODBYE_MS));
      const how = { agent, recordings: recordings[at] ?? [], rota, speed };
      await host.start((surroundings) => new DemoSource({ surroundings, ...how }));
      return host;
    };
    const hosts = await Promise.all(FLEET.map(start));
    const { url } = await endpoint();
    say(
      `${FLEET.length + 1} agents are at work; Ctrl-C stops them. One of them answers: ${await pagesUrl(url, env)}/sessions/${sessionId}`,
    );
    await fired(AbortSignal.any([signal, stop.signal, ...hosts.map(({ over }) => over)]));
    const failed = hosts.find(({ over }) => over.aborted);
    if (failed) throw new CliError(EXIT.failed, `${failed.agentId}: ${failed.over.reason}`);
    return signal.aborted ? EXIT.interrupted : EXIT.done;
  } catch (error) {
    if (!(error instanceof ProcessLockedError)) throw error;
    throw new CliError(EXIT.failed, `a demo is already running, as process ${error.pid}`);
  } finally {
    await Promise.allSettled(closing.map((close) => close()));
    release();
  }
}

function recordingNamed(name: string): Promise<Recording> {
  return readRecording(join(recordingsDir, `${name}.jsonl`));
}

function readOptions(argv: string[], env: Record<string, string | undefined>) {
  const { values, positionals } = readFlags('demo', argv, { speed: TEXT, ...SERVER_FLAGS }, env);
  if (positionals.length > 0) throw usageError('it takes options only', 'demo');
  const speed = Number(values.speed ?? '1');
  if (!(speed > 0 && speed <= 100)) throw usageError('--speed is a number above 0, at most 100', 'demo');
  return { ...values, speed };
}
