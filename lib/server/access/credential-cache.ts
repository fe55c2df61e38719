import { AppError, inShort } from '@interlude/protocol/errors';
import type { Permission, Role } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import type { ContextKind } from '@/db/context-kind';
import { pause } from '@/db/next-turn';
import type { ResultRows } from '@/db/reader';
import { CREDENTIAL_COLUMNS, type Credential, credentialFromRow, isLive } from './credential-rows';
import { LOCAL_ID, may, OWNER, type Principal } from './principal';
import { secretHash } from './secret';

/** Poll interval for changed credentials while one is in use. */
const LOOK_MS = 500;
/** Age up to which a poll's result is trusted. */
const FRESH_MS = 1_500;
/** Polling stops this long after the last request. */
const REST_AFTER_MS = 10_000;
/** Interval for persisting last-used times. */
const NOTE_USE_MS = 60_000;
/** Cache size, including unknown secrets. */
const MOST = 20_000;

/** Longest wait for a role refresh; then the stored role applies. */
const REFRESH_WAIT_MS = 2_000;

/** Timeout of a database query. */
const PATIENCE_MS = 5_000;

interface Entry {
  principal: Principal;
  credential: Credential;
  /** Monotonic expiry: setting the wall clock back must not extend a credential. */
  endsAt: number;
}

/** A stream or other long use that a credential permits. */
interface Watcher {
  needs: Permission;
  /** Its output is already redacted. */
  redacts: boolean;
  onEnd: () => void;
}

/**
 * Caches the credentials in use, so that recognizing one needs no query.
 *
 * Ordering: within two seconds of a revocation, by any process, the credential is refused and its streams have ended.
 * The same holds for streams that it no longer permits.
 * Failure: while the database doesn't answer, cached results expire after FRESH_MS and every request is refused.
 */
export class CredentialCache {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #steady: () => number;
  readonly #redactedRoles: readonly Role[];
  readonly #refreshRole: ((credentialId: string) => Promise<void>) | null;
  /** In-progress refreshes, by credential id. */
  readonly #refreshing = new Map<string, Promise<void>>();
  /** By secret hash; null for an invalid secret. */
  readonly #entries = new Map<string, Entry | null>();
  /** By credential id. */
  readonly #live = new Map<string, Principal>();
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #used = new Map<string, number>();
  #version: number | null = null;
  /** Number of full reloads. */
  #generation = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #usedAt = Number.NEGATIVE_INFINITY;
  #notedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  readonly #lasts: boolean;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** The persisted last-used time is out of date. */
  #isUseNews = false;
  #isFailing = false;
  #isClosed = false;

  constructor({
    database,
    now,
    steady,
    redactedRoles = [],
    kind = 'shared',
    refreshRole = null,
  }: {
    database: Database;
    now: () => number;
    steady?: (() => number) | undefined;
    /** Roles that always get redacted responses. */
    redactedRoles?: readonly Role[] | undefined;
    kind?: ContextKind | undefined;
    /** Refreshes a sign-in's role. Never rejects. */
    refreshRole?: ((credentialId: string) => Promise<void>) | null;
  }) {
    this.#refreshRole = refreshRole;
    this.#lasts = kind === 'shared';
    this.#database = database;
    this.#now = now;
    this.#redactedRoles = redactedRoles;
    this.#steady = steady ?? (() => performance.now());
  }

  /**
   * Finds the principal of a secret. Synchronous if cached and fresh.
   *
   * @param isUse false for a request that a page sends on its own
   * @returns null for an invalid, revoked or expired credential
   * @throws AppError `unavailable` while the database doesn't answer
   */
  find(secret: string, { isUse = true } = {}): Principal | null | Promise<Principal | null> {
    const hash = secretHash(secret);
    this.#usedAt = this.#steady();
    if (!this.#lasts) return this.#readOnce(hash, isUse);
    this.#keep();
    if (this.#usedAt - this.#lookedAt > FRESH_MS) return this.#look().then(() => this.#known(hash, isUse));
    return this.#known(hash, isUse);
  }

  /** For processes that keep nothing between requests: reads, and persists the use at once. */
  async #readOnce(hash: string, isUse: boolean): Promise<Principal | null> {
    let principal = this.#entries.get(hash)?.principal ?? (await this.#read(hash, isUse));
    const credential = this.#entries.get(hash)?.credential;
    if (principal !== null && credential !== undefined && this.#isRoleDue(credential)) {
      await this.#refreshSoon(credential.id);
      principal = await this.#read(hash, isUse);
    }
    if (this.#isUseNews) await this.#noteUse();
    return principal;
  }

  /** @param refreshes waits for a role refresh if one is due */
  #known(hash: string, isUse: boolean, refreshes = true): Principal | null | Promise<Principal | null> {
    const entry = this.#entries.get(hash);
    if (entry === undefined) {
      return this.#read(hash, isUse).then((found) => (found === null ? null : this.#known(hash, isUse, refreshes)));
    }
    if (entry === null) return null;
    const { credential, principal } = entry;
    if (!this.#isLive(entry)) {
      // another process may have used it since
      return credential.idleMs === null ? null : this.#read(hash, isUse);
    }
    if (refreshes && this.#isRoleDue(credential)) {
      return this.#refreshSoon(credential.id).then(() => this.#known(hash, isUse, false));
    }
    if (isUse) this.#noteUseOf(credential);
    return principal;
  }

  #noteUseOf(credential: Credential): void {
    const now = this.#now();
    credential.lastUsedAt = Math.max(credential.lastUsedAt, now);
    this.#used.set(credential.id, now);
  }

  #isRoleDue({ roleDueAt }: Credential): boolean {
    return this.#refreshRole !== null && roleDueAt !== null && roleDueAt <= this.#now();
  }

  /** Like `#refresh`, but gives up waiting after REFRESH_WAIT_MS. */
  #refreshSoon(credentialId: string): Promise<void> {
    return Promise.race([this.#refresh(credentialId), pause(REFRESH_WAIT_MS)]);
  }

  /** Refreshes a role once for all waiting requests, then reloads it. Never rejects. */
  #refresh(credentialId: string): Promise<void> {
    const refreshing =
      this.#refreshing.get(credentialId) ??
      (this.#refreshRole?.(credentialId) ?? Promise.resolve())
        .then(() => this.invalidate())
        .finally(() => this.#refreshing.delete(credentialId));
    this.#refreshing.set(credentialId, refreshing);
    return refreshing;
  }

  /**
   * Fires once when the credential is revoked, expires or loses a permission in use (including access to secrets).
   *
   * @param principal as of the start of that use
   * @returns stops watching
   */
  watch({ credentialId, redacts }: Principal, needs: Permission, onEnd: () => void): () => void {
    // the owner's token can't be revoked while the process runs
    if (credentialId === OWNER.credentialId) return () => {};
    const watcher = { needs, redacts, onEnd };
    // it may have changed since `find`
    if (!lets(this.#live.get(credentialId), watcher)) this.#version = null;
    const watchers = this.#watchers.get(credentialId) ?? new Set();
    this.#watchers.set(credentialId, watchers.add(watcher));
    this.#keep();
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(credentialId) === watchers) this.#watchers.delete(credentialId);
    };
  }

  /** Reloads after a change in this process. Never rejects. */
  async invalidate(): Promise<void> {
    // a poll in progress may predate the change
    await this.#looking?.catch(() => {});
    await this.#look().catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #keep(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setInterval(() => {
      const restsAfterMs = this.#lasts ? REST_AFTER_MS : 0;
      const isResting = this.#watchers.size === 0 && this.#steady() - this.#usedAt > restsAfterMs;
      if (!isResting) return void this.#look().catch(() => {});
      clearInterval(this.#timer);
      this.#timer = undefined;
      void this.#noteUse();
    }, LOOK_MS);
    if (typeof this.#timer === 'object') this.#timer.unref?.();
  }

  #look(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    const beganAt = this.#steady();
    try {
      const { rows } = await this.#ask('SELECT version FROM access');
      const version = Number(rows[0]?.version ?? 0);
      if (version !== this.#version) await this.#readAgain(version);
      this.#lookedAt = beganAt;
      this.#isFailing = false;
    } catch (error) {
      const isNews = !this.#isFailing && !this.#isClosed && this.#database.damage.code === null;
      if (isNews) serverLog('error', 'credentials can’t be looked up:', { error: inShort(error) });
      this.#isFailing = true;
      throw error;
    }
    await this.#endOver();
    if (beganAt - this.#notedAt >= NOTE_USE_MS) await this.#noteUse();
  }

  /** @throws AppError `unavailable`, also on timeout */
  async #ask(statement: InStatement): Promise<ResultRows> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(reject, PATIENCE_MS, new Error(`no answer within ${PATIENCE_MS / 1_000} s`));
    });
    try {
      return await Promise.race([this.#database.reader.execute(statement), late]);
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError(
        'unavailable',
        'Interlude can’t look up who you are: its database does not answer. Try again.',
        {
          cause: error,
          headers: { 'retry-after': '1' },
        },
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** Reloads every cached and watched credential; drops the rest. */
  async #readAgain(version: number): Promise<void> {
    this.#generation += 1;
    const hashes = [...this.#entries.keys()];
    const watched = [...this.#watchers.keys()];
    const { rows } = await this.#ask({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials
        WHERE hash IN (SELECT value FROM json_each(?)) OR id IN (SELECT value FROM json_each(?))`,
      args: [JSON.stringify(hashes), JSON.stringify(watched)],
    });
    // entries requested during the query are read by their requester
    const before = new Map(this.#entries);
    this.#entries.clear();
    this.#live.clear();
    for (const row of rows) {
      const { hash, ...credential } = credentialFromRow(row);
      this.#take(hash, credential, before.get(hash)?.endsAt);
    }
    for (const id of watched) this.#end(id, this.#live.get(id));
    // a stream that started during the query may watch a credential that was not read
    const isWhole = [...this.#watchers.keys()].every((id) => this.#live.has(id));
    this.#version = isWhole ? version : null;
  }

  async #read(hash: string, isUse: boolean): Promise<Principal | null> {
    const entry = await this.#readEntry(hash);
    if (entry === null || !this.#isLive(entry)) return null;
    this.#isUseNews = isUse && this.#now() - entry.credential.lastUsedAt >= NOTE_USE_MS;
    if (isUse) this.#noteUseOf(entry.credential);
    return entry.principal;
  }

  async #readEntry(hash: string): Promise<Entry | null> {
    const generation = this.#generation;
    const { rows } = await this.#ask({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE hash = ?`,
      args: [hash],
    });
    // the row may predate a concurrent reload
    if (generation !== this.#generation) return this.#readEntry(hash);
    const [row] = rows;
    if (row === undefined) {
      this.#remember(hash, null);
      return null;
    }
    const { hash: _, ...credential } = credentialFromRow(row);
    return this.#take(hash, credential, this.#entries.get(hash)?.endsAt);
  }

  /** Keeps entries that only the clock has expired: use by another process or a corrected clock may revive them. */
  #take(hash: string, credential: Credential, endedAt = Number.POSITIVE_INFINITY): Entry | null {
    const usedAt = this.#used.get(credential.id) ?? 0;
    const known = { ...credential, lastUsedAt: Math.max(credential.lastUsedAt, usedAt) };
    const leftMs = known.expiresAt === null ? Number.POSITIVE_INFINITY : known.expiresAt - this.#now();
    const endsAt = Math.min(endedAt, this.#steady() + leftMs);
    // a code is only exchanged for a sign-in
    const lets = credential.kind !== 'code' && credential.revokedAt === null;
    const entry = lets ? { credential: known, principal: principalOf(known, this.#redactedRoles), endsAt } : null;
    this.#remember(hash, entry);
    if (entry !== null && this.#isLive(entry)) this.#live.set(credential.id, entry.principal);
    return entry;
  }

  #isLive({ credential, endsAt }: Entry): boolean {
    return isLive(credential, this.#now()) && this.#steady() < endsAt;
  }

  #remember(hash: string, entry: Entry | null): void {
    this.#entries.delete(hash);
    this.#entries.set(hash, entry);
    for (let tries = this.#entries.size; this.#entries.size > MOST && tries > 0; tries -= 1) {
      const [[oldest, forgotten] = []] = this.#entries;
      if (oldest === undefined) return;
      this.#entries.delete(oldest);
      // a watched entry must stay so that its end is noticed
      const isWatched = forgotten && this.#watchers.has(forgotten.credential.id);
      if (isWatched) this.#entries.set(oldest, forgotten);
      else if (forgotten) this.#live.delete(forgotten.credential.id);
    }
  }

  /** Ends streams of expired credentials (an open stream is not use) and refreshes due roles. */
  async #endOver(): Promise<void> {
    if (this.#watchers.size === 0) return;
    for (const [hash, entry] of [...this.#entries]) {
      if (entry === null || !this.#watchers.has(entry.credential.id)) continue;
      const { id, idleMs } = entry.credential;
      // requests to another instance count as use
      const now = this.#isLive(entry) || idleMs === null ? entry : await this.#readEntry(hash);
      if (now === null || !this.#isLive(now)) this.#end(id);
      else if (this.#isRoleDue(now.credential)) void this.#refresh(id);
    }
  }

  /** @param principal current permissions; watchers that they don't cover end */
  #end(credentialId: string, principal?: Principal): void {
    const watchers = this.#watchers.get(credentialId) ?? new Set();
    for (const watcher of [...watchers]) {
      if (lets(principal, watcher)) continue;
      watchers.delete(watcher);
      watcher.onEnd();
    }
    if (watchers.size === 0) this.#watchers.delete(credentialId);
  }

  /** Persists last-used times. Doesn't bump the version: permissions are unchanged. */
  async #noteUse(): Promise<void> {
    this.#notedAt = this.#steady();
    const used = [...this.#used];
    this.#used.clear();
    if (used.length === 0 || this.#isClosed) return;
    await this.#database.writes
      .run((transaction) =>
        transaction.execute({
          sql: `UPDATE credentials SET last_used_at = max(last_used_at, u.value->>1)
            FROM json_each(?) AS u WHERE credentials.id = u.value->>0`,
          args: [JSON.stringify(used)],
        }),
      )
      .catch(() => {
        // the next attempt writes a later time
      });
  }
}

function lets(principal: Principal | undefined, { needs, redacts }: Watcher): boolean {
  return principal !== undefined && may(principal, needs) && (redacts || !principal.redacts);
}

/** @param redactedRoles roles that always get redacted responses, except embeds, which carry their own flag */
export function principalOf(credential: Credential, redactedRoles: readonly Role[] = []): Principal {
  const { id, name, role, scope, memberId, expiresAt, parentOrigin, kind, redacts } = credential;
  return {
    // every sign-in with this machine's link is one person
    id: memberId ?? (kind === 'session' ? LOCAL_ID : id),
    name,
    kind: kind === 'embed' ? 'embed' : role === 'runner' ? 'runner' : 'human',
    role,
    scope,
    credentialId: id,
    credentialKind: kind,
    memberId,
    expiresAt,
    parentOrigin,
    redacts: redacts || (kind !== 'embed' && redactedRoles.includes(role)),
  };
}
