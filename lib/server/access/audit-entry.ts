import type { AuditEntry, AuditRemoved, NewAuditEntry } from '@interlude/protocol/audit';
import type { Row } from '@libsql/client';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { audit } from '@/db/schema';
import { columnText, RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Principal } from './principal';

/**
 * The audit: what people and programs did, and what they were refused.
 *
 * Ordering: numbered without a hole, in the order of the commits.
 * Failure: an entry is written in the transaction of the act, so that there is no act without its entry and no entry
 * without its act. Each has a hash over itself and the hash before it: an entry that is changed or taken out breaks
 * the chain from there on. Retention takes out the oldest, says so in an entry, and keeps the hash of the last of them:
 * see remove-audit.ts. Runners write none: what they say is in the event log. What is refused again and again is told of
 * together: see refusals.ts.
 */

/** Something that somebody asks for, before it is known what comes of it. */
export interface Act {
  principal: Principal;
  action: string;
  agentId: string | null;
  sessionId: string | null;
  /** What it is about, as its path or its id. */
  target: string;
  /** SHA-256 of what was sent with it, in hex. */
  digest: string;
  origin: string;
}

/** The hash before the first entry. */
export const NO_HASH = '';

/** The end of the chain, also where retention has removed all of it. */
const NEWEST = `SELECT number, hash FROM (SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1)
  UNION ALL SELECT number, hash FROM audit_start ORDER BY number DESC LIMIT 1`;

/** What retention has removed; no row if nothing. */
export const AUDIT_REMOVED = 'SELECT number, hash, removed_at FROM audit_start';

/** How an entry calls that all entries up to one were removed, or are being removed. */
export const REMOVAL = 'remove old audit entries';
const REMOVED_TARGET = '/audit/';

/** The server itself, by its settings, says which entries it removes: `hash` is that of the last of them. */
export function removalEntry(upTo: number, hash: string, now: number): NewAuditEntry {
  const server = { actor: 'Interlude', actorKind: 'server', role: 'server', credentialId: 'server' };
  const what = { action: REMOVAL, agentId: null, sessionId: null, target: `${REMOVED_TARGET}${upTo}`, digest: hash };
  return { at: now, ...server, ...what, origin: '', result: 'done', times: 1 };
}

/** Up to which entry one says that they were removed; 0 if it says something else. */
export function removalIn({ action, actorKind, target }: Pick<AuditEntry, 'action' | 'actorKind' | 'target'>): number {
  if (action !== REMOVAL || actorKind !== 'server') return 0;
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

export function noteAct(transaction: WriteTransaction, act: Act, result: string, now: number): Promise<void> {
  return addEntry(transaction, entryOf(act, result, now));
}

export function entryOf({ principal, ...act }: Act, result: string, now: number): NewAuditEntry {
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

export async function addEntry(transaction: WriteTransaction, added: NewAuditEntry): Promise<void> {
  // its number and its hash follow from the last one
  transaction.touch('audit');
  const { rows } = await transaction.execute(NEWEST);
  const [last] = rows;
  const entry = { number: Number(last?.number ?? 0) + 1, ...asKept(added) };
  await transaction.execute(AUDIT.one({ ...entry, hash: hashOf(entry, String(last?.hash ?? NO_HASH)) }));
}

/** The hash is over what is read back: a path may name what no column keeps as it is. */
function asKept(entry: NewAuditEntry): NewAuditEntry {
  const fields = Object.entries(entry).map(([name, value]) => [
    name,
    typeof value === 'string' ? columnText(value.toWellFormed()) : value,
  ]);
  return Object.fromEntries(fields) as NewAuditEntry;
}

/** Over every field, in a fixed order. `times` counts from 2 on: entries from before it was there have their hash. */
export function hashOf(entry: Omit<AuditEntry, 'hash'>, before: string): string {
  const { number, at, actor, actorKind, role, credentialId, action } = entry;
  const { agentId, sessionId, target, digest, origin, result, times } = entry;
  const fields = [before, number, at, actor, actorKind, role, credentialId, action];
  const more = times === 1 ? [] : [times];
  return textDigest(JSON.stringify([...fields, agentId, sessionId, target, digest, origin, result, ...more]));
}

export function textDigest(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}
