import type { AuditCheck } from '@interlude/protocol/audit';
import type { RedactedFor } from '@interlude/protocol/redaction/outlets';
import type { Role } from '@interlude/protocol/scope';
import type { StorageSizes } from '@interlude/protocol/storage';
import type { ContextKind, Database } from '@/db/client';
import { TtlCache } from '@/db/ttl-cache';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import type { AccessSettings } from './access-settings';
import type { OidcSignIn } from './oidc/oidc-sign-in';
import type { OpenStreams } from './open-streams';
import type { WebhookSettings } from './webhook-settings';

/** What every handler is given beside its request; see lib/server for the rest. A test builds its own. */
export interface ServerContext extends AccessSettings {
  database: Database;
  /** Is told of the server's work; nobody has to be. */
  telemetry?: Telemetry | null;
  /** By default `shared`. */
  kind?: ContextKind;
  /** Is told of each stream that opens; nobody has to be, unless set. */
  streams?: OpenStreams;
  /** What outlives a request. */
  kept?: KeptAnswers;
  /** A clock that only goes on, in milliseconds; unless given, that of the process. */
  steady?: () => number;
  /** When to end a stream of our own accord, for hosts that cut long requests; null for never. */
  streamMaxMs: number | null;
  /** The origins of consoles that may embed pages, exactly as browsers write them. */
  embedOrigins?: readonly string[];
  /** Who is told no secrets. */
  redactedRoles?: readonly Role[];
  /** How long a sign-in lasts without being used. */
  sessionIdleMs: number;
  /** Lifetime of a member's sign-in, used or not, in milliseconds. */
  sessionMs: number;
  /** The identity provider that members sign in with. */
  oidc?: OidcSignIn | null;
  /** How long a reply may be owed before it is overdue. */
  replyOverdueMs?: number;
  /** Milliseconds that the result of a task may wait for a turn. */
  undeliveredMs?: number;
  /** Who is told what comes up in the inbox; none unless set. */
  webhook?: WebhookSettings | null;
  /** Why the webhook that is set is not used. */
  webhookProblem?: string | null;
}

/** Answers that many ask for, and that take long to look up. */
export class KeptAnswers {
  readonly storage: TtlCache<StorageSizes>;
  readonly metrics: TtlCache<RedactedFor<'metrics'>>;
  readonly auditCheck: TtlCache<AuditCheck>;

  /** @param isShared as for `KeptAnswer` */
  constructor(isShared = true) {
    this.storage = new TtlCache(isShared);
    this.metrics = new TtlCache(isShared);
    this.auditCheck = new TtlCache(isShared);
  }
}
