import { afterAll, afterEach } from 'vitest';
import { FrameReader } from '../support/frames';
import type { ServerTarget } from '../support/server-target';
import { describeAttachmentsContract } from './attachments-contract';
import { describeCommandsContract } from './commands-contract';
import { describeFleetContract } from './fleet-contract';
import { describeInboxContract } from './inbox-contract';
import { describeIngestContract } from './ingest-contract';
import { describeInsightsContract } from './insights-contract';
import { describeLogLevelContract } from './log-level-contract';
import { describeLogsContract } from './logs-contract';
import { describeMessagesContract } from './messages-contract';
import { describeObligationsContract } from './obligations-contract';
import { describeOwnershipContract } from './ownership-contract';
import { describeReadModelsContract } from './read-models-contract';
import { describeRequestsContract } from './requests-contract';
import { describeStreamContract } from './stream-contract';
import { describeTaskOutputContract } from './task-output-contract';
import { describeTurnAtContract } from './turn-at-contract';

/**
 * Every suite of reads and writes, against one server. Each suite uses its own sessions.
 *
 * @param options.isSplit omits the suites that have their own files
 */
export function describeContract(
  name: string,
  shared: () => Promise<ServerTarget>,
  { isBulk = false, isSplit = false } = {},
): void {
  // First, because it looks at all rows.
  describeIngestContract(name, shared);
  describeStreamContract(name, shared);
  describeReadModelsContract(name, shared);
  describeCommandsContract(name, shared);
  describeRequestsContract(name, shared);
  describeLogLevelContract(name, shared);
  describeInsightsContract(name, shared, { isBulk });
  describeAttachmentsContract(name, shared);
  describeObligationsContract(name, shared);
  describeOwnershipContract(name, shared);
  describeLogsContract(name, shared);
  describeTaskOutputContract(name, shared);
  describeTurnAtContract(name, shared);
  describeFleetContract(name, shared);
  if (isSplit) return;
  describeMessagesContract(name, shared);
  describeInboxContract(name, shared);
}

/** One server for all suites of a file: opened on first use, closed after the last suite. */
export function sharedServer<Target extends ServerTarget>(open: () => Promise<Target>): () => Promise<Target> {
  let server: Promise<Target> | null = null;
  afterAll(async () => (await server)?.close());
  // An open reader would receive the events of every later test.
  afterEach(() => FrameReader.leaveAll());
  return async () => {
    server ??= open();
    return { ...(await server), close: async () => {} };
  };
}
