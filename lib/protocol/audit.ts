/** What people and programs are told of the audit. @see PROTOCOL.md, Access */

export interface AuditEntry {
  /** From 1, without a hole; of removed ones the numbers are not used again. */
  number: number;
  at: number;
  actor: string;
  actorKind: string;
  role: string;
  credentialId: string;
  action: string;
  agentId: string | null;
  sessionId: string | null;
  /** The path that was asked for. */
  target: string;
  /** SHA-256 of what was sent, in hex. */
  digest: string;
  /** The origin of the page, or what the program calls itself. */
  origin: string;
  /** `done`, or the code of the refusal. */
  result: string;
  /** How many it stands for: more than 1 where the same was refused again and again, the newest of which it tells. */
  times: number;
  /** SHA-256 over this entry and the hash before it, in hex. */
  hash: string;
}

/** One before its place in the chain. */
export type NewAuditEntry = Omit<AuditEntry, 'number' | 'hash'>;

/** The oldest entries, which the server keeps no longer (`INTERLUDE_AUDIT_RETENTION_DAYS`). */
export interface AuditRemoved {
  /** The number of the last of them: the chain begins with the next. */
  upTo: number;
  /** Its hash, from which the next one's follows. */
  hash: string;
  /** When it was removed. */
  at: number;
}

export interface AuditPage {
  /** The newest first. */
  entries: AuditEntry[];
  /** Null if none was removed. */
  removed: AuditRemoved | null;
  /** What to give as `before` for the next page; null after the last. */
  next: number | null;
}

export interface AuditCheck {
  /** How many were looked at: all that are there. */
  entries: number;
  /** The hash of the newest entry: whoever keeps it elsewhere can tell later that nothing before it was changed. */
  head: string;
  /** The first entry that does not follow from the one before; null if all do. */
  brokenAt: number | null;
  /** Null if none was removed: then the chain begins with number 1. */
  removed: AuditRemoved | null;
}
