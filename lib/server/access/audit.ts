import type { AuditEntry, AuditRemoved, NewAuditEntry } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import type { Row } from '@libsql/client';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Database } from '@/db/client';
import { audit } from '@/db/schema';
import { columnText, RowWriter, shapeOf } from '@/db/table-rows';
import type { JobOptions, WriteJob, Writes, WriteTransaction } from '@/db/writes';
import { credentialEnded } from './authenticate';
import { isLive, readCredential } from './credential-rows';
import type { Principal } from './principal';
import { textDigest } from './secret';

/**
 * The audit log: actions by people and programs, and refused attempts.
 *
 * Ordering: numbered without gaps, in commit order.
 * Failure: an entry commits in the same transaction as its action, so neither exists without the other. Each entry's
 * hash covers its fields and the previous hash; a changed or deleted entry breaks the chain from there on. Retention
 * deletes the oldest entries, records that in an entry, and keeps the last deleted hash (remove-audit.ts). Runners
 * write no entries; the event log has their records. Repeated refusals are counted in one entry (refusal-counter.ts).
 */

/** An attempted action, before its outcome is known. */
export interface AuditedAction {
  principal: Principal;
  action: string;
  agentId: string | null;
  sessionId: string | null;
  /** Path or id of the action's subject. */
  target: string;
  /** SHA-256 of the method, path and body, in hex. */
  digest: string;
  origin: string;
}

export const GENESIS_HASH = '';

/** The newest number and hash, even if retention has removed every entry. */
const NEWEST = `SELECT number, hash FROM (SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1)
  UNION ALL SELECT number, hash FROM audit_start ORDER BY number DESC LIMIT 1`;

/** The last entry that retention removed; no row if none. */
export const SELECT_REMOVED = 'SELECT number, hash, removed_at FROM audit_start';

export const REMOVAL_ACTION = 'remove old audit entries';
const REMOVED_TARGET = '/audit/';

/** The server's own entry for a removal. `hash` is the hash of the last removed entry. */
export function removalEntry(upTo: number, hash: string, now: number): NewAuditEntry {
  const server = { actor: 'Interlude', actorKind: 'server', role: 'server', credentialId: 'server' };
  const fields = {
    action: REMOVAL_ACTION,
    agentId: null,
    sessionId: null,
    target: `${REMOVED_TARGET}${upTo}`,
    digest: hash,
  };
  return { at: now, ...server, ...fields, origin: '', result: 'done', times: 1 };
}

/** Returns the number of the last entry that a removal entry records as removed; 0 for any other entry. */
export function removedUpTo({
  action,
  actorKind,
  target,
}: Pick<AuditEntry, 'action' | 'actorKind' | 'target'>): number {
  if (action !== REMOVAL_ACTION || actorKind !== 'server') return 0;
  return Number(target.slice(REMOVED_TARGET.length)) || 0;
}

export function removedFromRow(row: Row | undefined): AuditRemoved | null {
  if (row === undefined) return null;
  return { upTo: Number(row.number), hash: String(row.hash), at: Number(row.removed_at) };
}

const ROW = shapeOf(audit);
const AUDIT = new RowWriter(audit);
export const AUDIT_COLUMNS = ROW.columns();
export const auditFromRow = ROW.read;

export function recordAction(
  transaction: WriteTransaction,
  act: AuditedAction,
  result: string,
  now: number,
): Promise<void> {
  return appendAuditEntry(transaction, toAuditEntry(act, result, now));
}

export function toAuditEntry({ principal, ...act }: AuditedAction, result: string, now: number): NewAuditEntry {
  return {
    at: now,
    actor: principal.name,
    actorKind: principal.kind,
    role: principal.role,
    credentialId: principal.credentialId,
    ...act,
    result,
    times: 1,
  };
}

export async function appendAuditEntry(transaction: WriteTransaction, added: NewAuditEntry): Promise<void> {
  // the new number and hash depend on the last row
  transaction.touch('audit');
  const { rows } = await transaction.execute(NEWEST);
  const [last] = rows;
  const entry = { number: Number(last?.number ?? 0) + 1, ...asStored(added) };
  await transaction.execute(AUDIT.one({ ...entry, hash: hashOf(entry, String(last?.hash ?? GENESIS_HASH)) }));
}

/** Hashes must cover the values as read back, because columns drop some characters that a path may contain. */
function asStored(entry: NewAuditEntry): NewAuditEntry {
  const fields = Object.entries(entry).map(([name, value]) => [
    name,
    typeof value === 'string' ? columnText(value.toWellFormed()) : value,
  ]);
  return Object.fromEntries(fields) as NewAuditEntry;
}

/**
 * Covers every field in a fixed order. Includes `times` only if it exceeds 1, so entries written before that field
 * existed keep their hashes.
 */
export function hashOf(entry: Omit<AuditEntry, 'hash'>, before: string): string {
  const { number, at, actor, actorKind, role, credentialId, action } = entry;
  const { agentId, sessionId, target, digest, origin, result, times } = entry;
  const fields = [before, number, at, actor, actorKind, role, credentialId, action];
  const more = times === 1 ? [] : [times];
  return textDigest(JSON.stringify([...fields, agentId, sessionId, target, digest, origin, result, ...more]));
}

const MAX_ORIGIN = 200;

export function describeAction(
  request: Request,
  principal: Principal,
  action: string,
  ids: { readonly agentId?: string; readonly sessionId?: string },
  body: Uint8Array | null,
): AuditedAction {
  const { pathname, search } = new URL(request.url);
  const digest = sha256.create().update(utf8ToBytes(`${request.method} ${pathname}${search}\n`));
  if (body !== null) digest.update(body);
  return {
    principal,
    action,
    agentId: ids.agentId ?? null,
    sessionId: ids.sessionId ?? null,
    target: pathname,
    digest: bytesToHex(digest.digest()),
    origin: requestSource(request.headers),
  };
}

/** The page's origin, or the program's User-Agent. */
export function requestSource(headers: Headers): string {
  return (headers.get('origin') ?? headers.get('user-agent') ?? '').slice(0, MAX_ORIGIN);
}

/**
 * Wraps a database so that its first write transaction also records `act`. Every write is refused if the sender's
 * credential was revoked, expired or lost its role in the meantime.
 */
export function withAudit(
  database: Database,
  act: AuditedAction,
  now: () => number,
): { database: Database; written: { count: number } } {
  const { writes } = database;
  const written = { count: 0 };
  const run = async <T>(job: WriteJob<T>, about?: JobOptions): Promise<T> => {
    // an action that takes several transactions gets its entry in the first one
    const isFirst = written.count === 0;
    const done = await writes.run(
      async (transaction) => {
        await requireLiveCredential(transaction, act.principal, now());
        const value = await job(transaction);
        if (isFirst) await recordAction(transaction, withCreatedId(act, value), 'done', now());
        return value;
      },
      isFirst ? { ...about, keys: [...(about?.keys ?? []), 'audit'] } : about,
    );
    written.count += 1;
    return done;
  };
  const queue = Object.create(writes, { run: { value: run } }) as Writes;
  return { database: { ...database, writes: queue }, written };
}

/** Adds the id of a created credential to the target. */
function withCreatedId(act: AuditedAction, value: unknown): AuditedAction {
  const { credential } = Object(value) as { credential?: { id?: unknown } };
  return typeof credential?.id === 'string' && !act.target.endsWith(credential.id)
    ? { ...act, target: `${act.target}/${credential.id}` }
    : act;
}

/** @throws AppError `unauthenticated`, `forbidden` */
async function requireLiveCredential(
  transaction: WriteTransaction,
  { credentialId, credentialKind, role }: Principal,
  now: number,
): Promise<void> {
  if (credentialKind === 'owner') return;
  transaction.rely('access');
  const credential = await readCredential(transaction, credentialId);
  // last-used times are persisted later
  if (credential === null || !isLive({ ...credential, lastUsedAt: now }, now)) throw credentialEnded();
  if (credential.role === role) return;
  throw new AppError(
    'forbidden',
    'Your role changed during this request. Reload the page, then retry if your role allows it.',
  );
}
