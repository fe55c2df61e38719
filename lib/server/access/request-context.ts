import type { AuditCheck } from '@interlude/protocol/access';
import type { RedactedFor } from '@interlude/protocol/redaction/redact-model';
import { EVERYTHING, type Role, type Scope } from '@interlude/protocol/scope';
import type { StorageSizes } from '@interlude/protocol/storage';
import type { ContextKind, Database } from '@/db/client';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import type { WebhookSettings } from '../webhook/webhook-settings';
import type { AccessSettings } from './access-settings';
import type { OidcSignIn } from './oidc/oidc-sign-in';
import type { Principal } from './principal';
import type { ShownDigests } from './shown-digests';
import type { OpenStreams, WatchAccess } from './streamed-response';
import { TtlCache } from './ttl-cache';

/**
 * A handler's request: path ids, parsed query and body, and the sender.
 *
 * @typeParam Id names of the path ids
 */
export type RequestContext<Id extends string = never, Given = unknown> = Given & {
  ids: Readonly<Record<Id, string>>;
  request: Request;
  principal: Principal;
  /** Digests in the form that the sender may see. */
  digests: ShownDigests;
  whenOver: WatchAccess;
};

/** A database restricted to a scope. Every read on behalf of a person or program goes through one. */
export interface ReadScope extends Pick<Database, 'reader' | 'reads'> {
  scope: Scope;
  /** True if the reader gets redacted responses. */
  redacts: boolean;
}

export function readScope({ reader, reads }: Database, scope: Scope, redacts = false): ReadScope {
  return { reader, reads, scope, redacts };
}

/** Scope of the server's own reads, whose results never reach a response. */
export function unscoped(database: Database): ReadScope {
  return readScope(database, EVERYTHING);
}

/** Dependencies and settings of every handler; lib/server adds more. */
export interface ServerContext extends AccessSettings {
  database: Database;
  telemetry?: Telemetry | null;
  /** Default: `shared`. */
  kind?: ContextKind;
  /** Counts open streams, for processes that freeze between requests. */
  streams?: OpenStreams;
  /** Caches that outlive a request. */
  caches?: ResponseCaches;
  /** Monotonic clock in milliseconds; default: the process's. */
  steady?: () => number;
  /** Milliseconds after which streams end, for hosts that abort long requests; null for never. */
  streamMaxMs: number | null;
  /** Console origins that may embed pages, exactly as browsers send them. */
  embedOrigins?: readonly string[];
  /** Roles that always get redacted responses. */
  redactedRoles?: readonly Role[];
  /** Idle timeout of a sign-in. */
  sessionIdleMs: number;
  /** Absolute lifetime of a member's sign-in. */
  sessionMs: number;
  oidc?: OidcSignIn | null;
  /** Milliseconds after which a reply is overdue. */
  replyOverdueMs?: number;
  /** Milliseconds without a turn after which a task's result counts as undelivered. */
  undeliveredMs?: number;
  webhook?: WebhookSettings | null;
  /** The reason why the configured webhook is disabled. */
  webhookProblem?: string | null;
}

/** Caches of expensive responses. */
export class ResponseCaches {
  readonly storage: TtlCache<StorageSizes>;
  readonly metrics: TtlCache<RedactedFor<'metrics'>>;
  readonly auditCheck: TtlCache<AuditCheck>;

  /** @param isShared true if concurrent requests may wait for the same read */
  constructor(isShared = true) {
    this.storage = new TtlCache(isShared);
    this.metrics = new TtlCache(isShared);
    this.auditCheck = new TtlCache(isShared);
  }
}
