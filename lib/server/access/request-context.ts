import type { AuditCheck } from '@interlude/protocol/audit';
import type { RedactedFor } from '@interlude/protocol/redaction/outlets';
import { EVERYTHING, type Role, type Scope } from '@interlude/protocol/scope';
import type { StorageSizes } from '@interlude/protocol/storage';
import type { Database } from '@/db/client';
import type { ContextKind } from '@/db/context-kind';
import { KeptAnswer } from '@/db/kept-answer';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import type { WebhookSettings } from '../webhook/webhook-settings';
import type { AccessSettings } from './access-settings';
import type { OidcSignIn } from './oidc/oidc-sign-in';
import type { Principal } from './principal';
import type { ShownDigests } from './shown-digests';
import type { OpenStreams } from './streamed-response';

/**
 * A request as its handler gets it: the ids in the path, the query and body as parsed by the route's schemas, and who
 * sends it.
 *
 * @typeParam Id the names of the ids
 */
export type RequestContext<Id extends string = never, Given = unknown> = Given & {
  ids: Readonly<Record<Id, string>>;
  request: Request;
  principal: Principal;
  /** Digests in the form this sender is shown and sends back. */
  digests: ShownDigests;
  /** Calls back once if the sender may no longer come in, or ask for this, while the answer lasts. @returns how to stop that */
  whenOver: (onEnd: () => void) => () => void;
};

/** A database as far as somebody may see it. Everything that is read for people or programs is read through one. */
export interface ReadScope extends Pick<Database, 'reader' | 'reads'> {
  scope: Scope;
  /** Whether whoever it is for is told no secrets. */
  redacts: boolean;
}

export function readScope({ reader, reads }: Database, scope: Scope, redacts = false): ReadScope {
  return { reader, reads, scope, redacts };
}

/** For the server's own work, which is no answer to anybody. */
export function unscoped(database: Database): ReadScope {
  return readScope(database, EVERYTHING);
}

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
  kept?: ResponseCaches;
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
export class ResponseCaches {
  readonly storage: KeptAnswer<StorageSizes>;
  readonly metrics: KeptAnswer<RedactedFor<'metrics'>>;
  readonly auditCheck: KeptAnswer<AuditCheck>;

  /** @param isShared as for `KeptAnswer` */
  constructor(isShared = true) {
    this.storage = new KeptAnswer(isShared);
    this.metrics = new KeptAnswer(isShared);
    this.auditCheck = new KeptAnswer(isShared);
  }
}
