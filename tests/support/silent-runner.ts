import { join } from 'node:path';
import { controlPath } from '@interlude/runner/host/control-file';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import type { Endpoint } from '@interlude/runner/host/server-request';
import type { Source } from '@interlude/runner/host/source';
import { type LevelClock, LevelSwitch } from '@interlude/runner/logger/level-switch';
import type { Logger } from '@interlude/runner/logger/logger';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { onTestFinished } from 'vitest';

/** A complete runner with a silent agent. Its log is its only output. */
export interface SilentRunner {
  logger: Logger;
  outbox: Outbox;
  /** The fatal error, if any. */
  over: string[];
  /** Stops it as Ctrl-C does. */
  close(): Promise<void>;
}

const nothing = (sessionId: string): Source => ({
  sessions: [
    { sessionId, process: { state: 'running', pid: null, exitCode: null }, pendingMessages: 0, attachments: [] },
  ],
  start: async () => {},
  deliver: async () => ({ state: 'failed', reason: 'it does nothing' }),
  close: async () => {},
});

let processes = 0;

/** @param clock used for the log level's expiry */
export async function startSilentRunner(options: {
  agentId: string;
  folder: string;
  endpoint: Endpoint;
  startedAt?: number;
  clock?: LevelClock;
}): Promise<SilentRunner> {
  const { agentId, folder, endpoint, startedAt = Date.now(), clock } = options;
  processes += 1;
  const host = await RunnerHost.open({
    about: { kind: 'quiet' },
    journal: 'quiet',
    meanwhile: 'the agent continues',
    openOutbox: (listeners) => Outbox.open(join(folder, 'outbox.db'), { agentId, ...listeners }),
    endpoint,
    level: new LevelSwitch(undefined, clock),
    ...{ dataDir: folder, logDir: folder },
    controlFile: (id) => controlPath(folder, id),
    runnerId: `process-${processes}`,
    startedAt,
  });
  const { logger, outbox } = host;
  const over: string[] = [];
  host.stopSignal.addEventListener('abort', () => over.push(host.stopSignal.reason));
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= host.close(0, 2_000).then(() => undefined);
    return closing;
  };
  onTestFinished(close);
  await host.start(() => nothing(`session-of-${agentId}`));
  return { logger, outbox, over, close };
}
