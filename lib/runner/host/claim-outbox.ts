import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { fileNameOf } from '../logger/logger';
import { Outbox } from '../outbox/outbox';
import { OutboxVersionError } from '../outbox/store';
import { ProcessLockedError } from './process-lock';
import type { OutboxListeners } from './runner-host';

export interface OutboxClaim {
  folder: string;
  /** One file per server, since each dashboard has its own sequence numbers. */
  serverKey: string;
  agentId: string | undefined;
  baseId: string;
  /** True if the outbox belongs to the wanted agent. If none does, the first free agent is used. */
  matches: (outbox: Outbox) => Promise<boolean>;
  listeners: OutboxListeners;
}

const MOST_AGENTS = 64;

/**
 * Opens the outbox of an agent. An unnamed agent gets the first free id of `<base>`, `<base>-2`, …, so two runners in
 * one folder are two agents.
 *
 * Failure: unnamed agents skip an outbox that is in use, and one of another version with a notice.
 *
 * @throws ProcessLockedError when another process, which the error names, runs the named agent
 * @throws OutboxVersionError when another version of Interlude wrote the named agent's file
 */
export async function claimOutbox(claim: OutboxClaim): Promise<Outbox> {
  if (claim.agentId !== undefined) return await open(claim, claim.agentId);
  let free: Outbox | null = null;
  for (let index = 1; index <= MOST_AGENTS; index += 1) {
    const agentId = index === 1 ? claim.baseId : `${claim.baseId}-${index}`;
    const opened = await open(claim, agentId).catch((error) => {
      if (error instanceof ProcessLockedError) return null;
      if (!(error instanceof OutboxVersionError)) throw error;
      const message = `skipped the outbox of ${agentId}: ${error.message}`;
      claim.listeners.onNotice({ level: 'warn', kind: 'passed-over', message });
      return null;
    });
    if (opened === null) continue;
    if (await claim.matches(opened)) {
      await free?.stop();
      return opened;
    }
    const isNew = opened.status.lastSeq === 0;
    if (free === null) free = opened;
    else await opened.stop();
    // No used outbox comes after an unused one.
    if (isNew) return free;
  }
  if (free === null) throw new Error(`${MOST_AGENTS} agents already run in this folder; name another with --agent`);
  return free;
}

async function open(claim: OutboxClaim, agentId: string): Promise<Outbox> {
  const { folder, serverKey, listeners } = claim;
  const server = createHash('sha256').update(serverKey).digest('hex').slice(0, 8);
  return await Outbox.open(join(folder, `runner-${fileNameOf(agentId)}-${server}.db`), { agentId, ...listeners });
}
