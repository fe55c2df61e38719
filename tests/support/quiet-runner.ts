import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { RunnerHost } from '@/lib/runner/host/runner-host';
import type { Source } from '@/lib/runner/host/source';
import { type LevelClock, LevelSwitch } from '@/lib/runner/logger/level-switch';
import { createLogger, type Logger } from '@/lib/runner/logger/logger';
import { Outbox } from '@/lib/runner/outbox/outbox';
import type { Endpoint } from '@/lib/runner/outbox/send';

/** The whole runner around an agent that says nothing and does nothing. Its log is all there is to hear of it. */
export interface QuietRunner {
  logger: Logger;
  outbox: Outbox;
  /** Why it could not go on, once it could not. */
  over: string[];
  /** As Ctrl-C ends it. */
  close(): Promise<void>;
}

const NOTHING: Source = {
  observation: {
    process: { state: 'running', pid: null, exitCode: null },
    openTurnId: null,
    tasks: [],
    requests: [],
    provider: null,
    pendingMessages: 0,
  },
  start: async () => {},
  deliver: async () => ({ state: 'failed', reason: 'it does nothing' }),
  close: async () => {},
};

let processes = 0;

/** @param clock the one its log level lives by */
export async function startQuietRunner(options: {
  agentId: string;
  folder: string;
  endpoint: Endpoint;
  startedAt?: number;
  clock?: LevelClock;
}): Promise<QuietRunner> {
  const { agentId, folder, endpoint, startedAt = Date.now(), clock } = options;
  processes += 1;
  let host: RunnerHost | null = null;
  const over: string[] = [];
  const outbox = await Outbox.open(join(folder, 'outbox.db'), {
    producerId: `${agentId}-${processes}`,
    agentId,
    endpoint,
    onStatus: (status) => host?.outboxChanged(status),
    onNotice: (notice) => host?.outboxNotice(notice),
  });
  const level = new LevelSwitch(undefined, clock);
  const logger = createLogger({ agentId, dir: folder, level, onRecord: (entry) => host?.logged(entry) });
  host = new RunnerHost({
    kind: 'quiet',
    agentId,
    sessionId: `session-of-${agentId}`,
    runnerId: `process-${processes}`,
    startedAt,
    outbox,
    endpoint,
    logger,
    dataDir: folder,
    openSource: () => NOTHING,
    onOver: (reason) => void over.push(reason),
  });
  const running = host;
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= running
      .close(0, 2_000)
      .then(() => undefined)
      .finally(() => logger.close());
    return closing;
  };
  onTestFinished(close);
  await running.start();
  return { logger, outbox, over, close };
}
