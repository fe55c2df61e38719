import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { truncateText } from '@interlude/protocol/text';
import { ProcessLockedError } from '../host/process-lock';
import type { Endpoint } from '../host/server-request';
import type { OutboxNotice } from '../outbox/delivery';
import { Outbox, type OutboxStatus } from '../outbox/outbox';
import { OutboxVersionError } from '../outbox/store';
import type { Recording } from './recording';

/**
 * The outbox of one replay with its progress, in one file so that they can't disagree.
 *
 * - With --session, the file belongs to (recording, session, agent, server) and is kept: the same command resumes, and
 *   does nothing once everything is acknowledged.
 * - Without, each replay is a new session. Only an unfinished replay is resumed; its file is deleted at the end.
 *
 * Failure: a server that lost acknowledged records (its database was deleted or replaced) gets the recording from the
 * beginning.
 */
export interface ReplayPlace {
  recording: Recording;
  agentId: string;
  sessionId: string | undefined;
  serverKey: string;
  outboxDir: string;
}

export interface ReplayOutbox {
  outbox: Outbox;
  sessionId: string;
  /** The next line to play. */
  line: number;
  /** Removes the file of a replay without --session. Call it after `outbox.stop()`, once everything is acknowledged. */
  forget: () => Promise<void>;
}

interface Listeners {
  endpoint: Endpoint;
  onStatus: (status: OutboxStatus) => void;
  onNotice: (notice: OutboxNotice) => void;
}

const CURSOR = 'replay';
/** Replays of one recording at the same time, each with its own session. */
const MAX_REPLAYS = 256;

export function replayCursor(sessionId: string, line: number): { name: string; value: string } {
  return { name: CURSOR, value: JSON.stringify({ sessionId, line }) };
}

/**
 * @throws ProcessLockedError when the named session is being replayed by another process
 * @throws OutboxVersionError when another version of Interlude wrote the named session's file
 */
export async function openReplayOutbox(place: ReplayPlace, listeners: Listeners): Promise<ReplayOutbox> {
  if (place.sessionId !== undefined) return openAt(fileOf(place), place, listeners);
  for (let at = 0; at < MAX_REPLAYS; at += 1) {
    try {
      return await openAt(fileOf(place, at), place, listeners);
    } catch (error) {
      if (!(error instanceof ProcessLockedError || error instanceof OutboxVersionError)) throw error;
    }
  }
  throw new Error(`${MAX_REPLAYS} replays of ${place.recording.name} are already running`);
}

async function openAt(file: string, place: ReplayPlace, listeners: Listeners): Promise<ReplayOutbox> {
  const { agentId, recording } = place;
  const options = { agentId, sendAtOpen: false, ...listeners };
  let outbox = await Outbox.open(file, options);
  let stored = await outbox.cursor(CURSOR);
  if (stored !== null && (await outbox.isRemembered()) === false) {
    await outbox.stop();
    await removeOutbox(file);
    outbox = await Outbox.open(file, options);
    stored = null;
  }
  const { sessionId, line } = stored
    ? (JSON.parse(stored) as { sessionId: string; line: number })
    : {
        sessionId: place.sessionId ?? `${truncateText(recording.name, 200)}-${randomBytes(4).toString('hex')}`,
        line: 0,
      };
  const forget = () => (place.sessionId === undefined ? removeOutbox(file) : Promise.resolve());
  return { outbox, sessionId, line, forget };
}

function fileOf({ recording, agentId, sessionId, serverKey, outboxDir }: ReplayPlace, at = 0): string {
  const identity = JSON.stringify([recording.hash, agentId, sessionId ?? null, serverKey]);
  const hash = createHash('sha256').update(identity).digest('hex').slice(0, 16);
  // The name is for readers; the hash makes it unique.
  const name = (sessionId ?? recording.name).replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, 80);
  return join(outboxDir, `replay-${name}-${hash}${at > 0 ? `-${at}` : ''}.db`);
}

async function removeOutbox(file: string): Promise<void> {
  for (const suffix of ['', '-wal', '-shm', '.lock', '.lock-journal']) await rm(file + suffix, { force: true });
}
