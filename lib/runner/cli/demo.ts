import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import { interludeCommand, resolveOwnFolder } from '../host/own-program.mjs';
import { ProcessLockedError } from '../host/process-lock';
import { RunnerHost } from '../host/runner-host';
import { TroubleNotices } from '../logger/delivery-journal';
import { Redactor } from '../logger/redactor';
import { Outbox } from '../outbox/outbox';
import { loadClaudeSdk } from '../sources/claude/claude-sdk';
import type { Command } from './command';
import {
  aborted,
  CliError,
  contextRatioOf,
  EXIT,
  type ExitCode,
  logLevelOf,
  printNotice,
  readFlags,
  SERVER_FLAGS,
  stopSignals,
  TEXT,
  TOKEN_HELP,
  usageError,
} from './command';
import { openDataDir, pagesUrl, serverEndpoint, tokenAdvice, tokenSource } from './dashboard';
import { startAssistant } from './demo/assistant';
import { ASSISTANT } from './demo/assistant-script';
import { type DemoAgent, DemoSource, FLEET, RestLimiter } from './demo/demo-source';
import { DemoTidier } from './demo/demo-tidier';
import { type Recording, readRecording } from './recording';

const HELP = `Usage: ${interludeCommand(['demo'])} [options]

Runs demo agents until stopped. ${FLEET.length} of them replay recordings of real Claude Code runs, one after the other, through
adapter, outbox and HTTP like every agent. One more, ${ASSISTANT}, answers what you write and runs what you allow. It is
scripted and needs no API key: Claude Code with a scripted model if the Agent SDK is installed, else a built-in agent.
Each agent has one session, also after a restart. At the end, with the owner's token, the demo archives the sessions
that you have not written to, pinned or renamed, and retires its agents.

  --speed N        play N times as fast as recorded; default 1
  --url URL        the dashboard; default: INTERLUDE_URL, else the one on this machine
  --token-file F   ${TOKEN_HELP}`;

const MIN_BUSY_AGENTS = 3;
const FLUSH_MS = 3_000;

const recordingsDir = fileURLToPath(new URL('./demo/recordings', import.meta.url));

export const command: Command = { help: HELP, run: demo };

async function demo(argv: string[], env: Record<string, string | undefined>): Promise<ExitCode> {
  const { speed, ...server } = readOptions(argv, env);
  const home = openDataDir(env);
  const { ends: signal, release } = stopSignals();
  const stop = new AbortController();
  // Ends the demo of `npm start -- --demo` with the dashboard, which may already have exited.
  process.once('disconnect', () => stop.abort());
  if (process.connected === false) stop.abort();
  const redactor = new Redactor();
  const secret = (token: string | undefined) => redactor.addSecret(token);
  const endpoint = serverEndpoint(server, env, secret);
  const tidier = new DemoTidier(serverEndpoint(server, env, secret, 'owner'));
  // The launcher may have the owner's token from its environment. Not passed as a variable, so that no agent reads it.
  process.once('message', (message) => {
    const token = textOf(fieldsOf(message).ownerToken);
    secret(token ?? undefined);
    if (token !== null) tidier.useToken(token);
  });
  const notices = new TroubleNotices(
    'the demo continues, and unsent records are sent later',
    tokenAdvice(tokenSource(server, env)),
  );
  const closing: (() => Promise<unknown>)[] = [];
  try {
    const recordings = await Promise.all(FLEET.map((agent) => Promise.all(agent.recordings.map(recordingNamed))));
    const sdkFolder = env.INTERLUDE_CLAUDE_SDK_DIR ? resolveOwnFolder(env.INTERLUDE_CLAUDE_SDK_DIR) : undefined;
    const assistant = await startAssistant({
      dataDir: home,
      installed: await loadClaudeSdk(home, sdkFolder),
      env,
      redactor,
      endpoint,
      speed,
      onStatus: (it) => notices.status(ASSISTANT, it),
      onOver: (reason) => printNotice(`${ASSISTANT}: ${reason}`),
    });
    closing.push(() => assistant.close());
    const { sessionId } = assistant;
    const restLimiter = new RestLimiter(FLEET.length, MIN_BUSY_AGENTS);
    const level = logLevelOf(env);
    const logsContextRatio = contextRatioOf(env);
    const start = async (agent: DemoAgent, at: number) => {
      const { agentId } = agent;
      const host = await RunnerHost.open({
        about: { kind: 'claude', source: 'demo', instead: { agentId: ASSISTANT, sessionId } },
        journal: 'recording',
        meanwhile: 'the recording continues',
        ...{ endpoint, redactor, dataDir: home, level, logsContextRatio },
        openOutbox: (listeners) => Outbox.open(join(home, 'outboxes', `demo-${agentId}.db`), { agentId, ...listeners }),
        onStatus: (it) => notices.status(agentId, it),
      });
      closing.push(() => host.close(0, FLUSH_MS));
      const how = { agent, recordings: recordings[at] ?? [], restLimiter, speed };
      await host.start((context) => new DemoSource({ context, ...how }));
      return host;
    };
    const hosts = await Promise.all(FLEET.map(start));
    void tidier.begin(sessionId);
    const { url } = await endpoint();
    printNotice(
      `${FLEET.length + 1} agents are running; press Ctrl-C to stop them. One of them answers: ${await pagesUrl(url, env)}/sessions/${sessionId}`,
    );
    await aborted(AbortSignal.any([signal, stop.signal, ...hosts.map(({ stopSignal }) => stopSignal)]));
    const failed = hosts.find(({ stopSignal }) => stopSignal.aborted);
    if (failed) throw new CliError(EXIT.failed, `${failed.agentId}: ${failed.stopSignal.reason}`);
    return signal.aborted ? EXIT.interrupted : EXIT.done;
  } catch (error) {
    if (!(error instanceof ProcessLockedError)) throw error;
    throw new CliError(EXIT.failed, `a demo is already running as process ${error.pid}; stop it first`);
  } finally {
    await Promise.allSettled(closing.map((close) => close()));
    if (closing.length > FLEET.length) await tidier.end();
    release();
  }
}

function recordingNamed(name: string): Promise<Recording> {
  return readRecording(join(recordingsDir, `${name}.jsonl`));
}

function readOptions(argv: string[], env: Record<string, string | undefined>) {
  const { values, positionals } = readFlags('demo', argv, { speed: TEXT, ...SERVER_FLAGS }, env);
  if (positionals.length > 0) throw usageError('this command takes options only', 'demo');
  const speed = Number(values.speed ?? '1');
  if (!(speed > 0 && speed <= 100)) throw usageError('--speed must be a number above 0, at most 100', 'demo');
  return { ...values, speed };
}
