import { AppError, forLog } from '@interlude/protocol/errors';
import type { Permission, Role } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import type { ResultRows } from '@/db/reader';
import { pause, unref } from '@/db/yield-to-loop';
import { CREDENTIAL_COLUMNS, type Credential, credentialFromRow, isLive, principalOf } from './credential-rows';
import { CredentialWatchers, isCovered } from './credential-watchers';
import { OWNER, type Principal } from './principal';
import type { ServerContext } from './request-context';
import { textDigest } from './secret';

/** Poll interval for changed credentials while one is in use. */
const POLL_MS = 500;
/** Age up to which a poll's result is trusted. */
const FRESH_MS = 1_500;
/** Polling stops this long after the last request. */
const IDLE_MS = 10_000;
/** Interval for persisting last-used times. */
const PERSIST_USE_MS = 60_000;
/** Cache size, including unknown secrets. */
const MAX_ENTRIES = 20_000;

/** Maximum wait for a role refresh, after which the stored role applies. */
const REFRESH_WAIT_MS = 2_000;

const QUERY_TIMEOUT_MS = 5_000;

interface Entry {
  principal: Principal;
  credential: Credential;
  /** Monotonic expiry: setting the wall clock back must not extend a credential. */
  endsAt: number;
}

/**
 * Caches the credentials in use, so recognizing one needs no query.
 *
 * Ordering: within two seconds of a revocation by any process, the credential is refused and its streams have ended.
 * So have streams that a changed credential no longer permits.
 * Failure: while the database doesn't respond, cached results expire after FRESH_MS and every request is refused.
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
  readonly #watchers = new CredentialWatchers();
  readonly #used = new Map<string, number>();
  #version: number | null = null;
  /** Number of full reloads. */
  #generation = 0;
  #polledAt = Number.NEGATIVE_INFINITY;
  #usedAt = Number.NEGATIVE_INFINITY;
  #persistedAt = Number.NEGATIVE_INFINITY;
  #polling: Promise<void> | null = null;
  readonly #isLongLived: boolean;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** The persisted last-used time is out of date. */
  #isUseStale = false;
  #isFailing = false;
  #isClosed = false;

  /** @param refreshRole refreshes a sign-in's role; never rejects */
  constructor({
    database,
    now,
    steady = () => performance.now(),
    redactedRoles = [],
    kind = 'shared',
    refreshRole = null,
  }: Pick<ServerContext, 'database' | 'now' | 'steady' | 'redactedRoles' | 'kind'> & {
    refreshRole?: ((credentialId: string) => Promise<void>) | null;
  }) {
    this.#database = database;
    this.#now = now;
    this.#steady = steady;
    this.#redactedRoles = redactedRoles;
    this.#isLongLived = kind === 'shared';
    this.#refreshRole = refreshRole;
  }

  /**
   * Finds the principal of a secret. Synchronous if cached and fresh.
   *
   * @param isUse false for a request that a page sends on its own
   * @returns null for an invalid, revoked or expired credential
   * @throws AppError `unavailable` while the database doesn't respond
   */
  find(secret: string, { isUse = true } = {}): Principal | null | Promise<Principal | null> {
    const hash = textDigest(secret);
    this.#usedAt = this.#steady();
    if (!this.#isLongLived) return this.#findOnce(hash, isUse);
    this.#startPolling();
    if (this.#usedAt - this.#polledAt > FRESH_MS) return this.#poll().then(() => this.#fromCache(hash, isUse));
    return this.#fromCache(hash, isUse);
  }

  /** For processes without state between requests: reads the credential, and persists its use immediately. */
  async #findOnce(hash: string, isUse: boolean): Promise<Principal | null> {
    let principal = this.#entries.get(hash)?.principal ?? (await this.#read(hash, isUse));
    const credential = this.#entries.get(hash)?.credential;
    if (principal !== null && credential !== undefined && this.#isRoleDue(credential)) {
      await this.#refreshSoon(credential.id);
      principal = await this.#read(hash, isUse);
    }
    if (this.#isUseStale) await this.#persistUse();
    return principal;
  }

  /** @param refreshes waits for a role refresh if one is due */
  #fromCache(hash: string, isUse: boolean, refreshes = true): Principal | null | Promise<Principal | null> {
    const entry = this.#entries.get(hash);
    if (entry === undefined) {
      return this.#read(hash, isUse).then((found) => (found === null ? null : this.#fromCache(hash, isUse, refreshes)));
    }
    if (entry === null) return null;
    const { credential, principal } = entry;
    if (!this.#isLive(entry)) {
      // another process may have used it since
      return credential.idleMs === null ? null : this.#read(hash, isUse);
    }
    if (refreshes && this.#isRoleDue(credential)) {
      return this.#refreshSoon(credential.id).then(() => this.#fromCache(hash, isUse, false));
    }
    if (isUse) this.#recordUse(credential);
    return principal;
  }

  #recordUse(credential: Credential): void {
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
   * @param principal the permissions when the use started
   * @returns a function that stops watching
   */
  watch({ credentialId, redacts }: Principal, needs: Permission, onEnd: () => void): () => void {
    // the owner's token can't be revoked while the process runs
    if (credentialId === OWNER.credentialId) return () => {};
    const watcher = { needs, redacts, onEnd };
    // the credential may have changed since `find`
    if (!isCovered(watcher, this.#live.get(credentialId))) this.#version = null;
    const stop = this.#watchers.add(credentialId, watcher);
    this.#startPolling();
    return stop;
  }

  /** Reloads after a change in this process. Never rejects. */
  async invalidate(): Promise<void> {
    // a poll in progress may have read before the change
    await this.#polling?.catch(() => {});
    await this.#poll().catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #startPolling(): void {
    if (this.#timer !== undefined || this.#isClosed) return;
    this.#timer = setInterval(() => {
      const idleMs = this.#isLongLived ? IDLE_MS : 0;
      const isIdle = this.#watchers.isEmpty && this.#steady() - this.#usedAt > idleMs;
      if (!isIdle) return void this.#poll().catch(() => {});
      clearInterval(this.#timer);
      this.#timer = undefined;
      void this.#persistUse();
    }, POLL_MS);
    unref(this.#timer);
  }

  #poll(): Promise<void> {
    this.#polling ??= this.#pollNow().finally(() => {
      this.#polling = null;
    });
    return this.#polling;
  }

  async #pollNow(): Promise<void> {
    const startedAt = this.#steady();
    try {
      const { rows } = await this.#query('SELECT version FROM access');
      const version = Number(rows[0]?.version ?? 0);
      if (version !== this.#version) await this.#reload(version);
      this.#polledAt = startedAt;
      this.#isFailing = false;
    } catch (error) {
      const isFirst = !this.#isFailing && !this.#isClosed && this.#database.damage.code === null;
      if (isFirst)
        serverLog('error', 'Can’t read credentials; requests are refused until the database responds:', {
          error: forLog(error),
        });
      this.#isFailing = true;
      throw error;
    }
    await this.#endExpired();
    if (startedAt - this.#persistedAt >= PERSIST_USE_MS) await this.#persistUse();
  }

  /** @throws AppError `unavailable`, also on timeout */
  async #query(statement: InStatement): Promise<ResultRows> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(reject, QUERY_TIMEOUT_MS, new Error(`no response within ${QUERY_TIMEOUT_MS / 1_000} s`));
    });
    try {
      return await Promise.race([this.#database.reader.execute(statement), late]);
    } catch (error) {
      if (error instanceof AppError) throw error;
      throw new AppError(
        'unavailable',
        'Interlude can’t verify your credential, because its database doesn’t respond. Try again.',
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
  async #reload(version: number): Promise<void> {
    this.#generation += 1;
    const hashes = [...this.#entries.keys()];
    const watched = this.#watchers.credentialIds;
    const { rows } = await this.#query({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials
        WHERE hash IN (SELECT value FROM json_each(?)) OR id IN (SELECT value FROM json_each(?))`,
      args: [JSON.stringify(hashes), JSON.stringify(watched)],
    });
    // entries requested during the query are read by the request that needs them
    const before = new Map(this.#entries);
    this.#entries.clear();
    this.#live.clear();
    for (const row of rows) {
      const { hash, ...credential } = credentialFromRow(row);
      this.#store(hash, credential, before.get(hash)?.endsAt);
    }
    for (const id of watched) this.#watchers.notify(id, this.#live.get(id));
    // a stream that started during the query may watch a credential that was not read
    const isWhole = this.#watchers.credentialIds.every((id) => this.#live.has(id));
    this.#version = isWhole ? version : null;
  }

  async #read(hash: string, isUse: boolean): Promise<Principal | null> {
    const entry = await this.#readEntry(hash);
    if (entry === null || !this.#isLive(entry)) return null;
    this.#isUseStale = isUse && this.#now() - entry.credential.lastUsedAt >= PERSIST_USE_MS;
    if (isUse) this.#recordUse(entry.credential);
    return entry.principal;
  }

  async #readEntry(hash: string): Promise<Entry | null> {
    const generation = this.#generation;
    const { rows } = await this.#query({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE hash = ?`,
      args: [hash],
    });
    // the row may predate a concurrent reload
    if (generation !== this.#generation) return this.#readEntry(hash);
    const [row] = rows;
    if (row === undefined) {
      this.#cache(hash, null);
      return null;
    }
    const { hash: _, ...credential } = credentialFromRow(row);
    return this.#store(hash, credential, this.#entries.get(hash)?.endsAt);
  }

  /** Keeps entries that expired by time alone: use by another process or a corrected clock may revive them. */
  #store(hash: string, credential: Credential, knownEnd = Number.POSITIVE_INFINITY): Entry | null {
    const usedAt = this.#used.get(credential.id) ?? 0;
    const known = { ...credential, lastUsedAt: Math.max(credential.lastUsedAt, usedAt) };
    const leftMs = known.expiresAt === null ? Number.POSITIVE_INFINITY : known.expiresAt - this.#now();
    const endsAt = Math.min(knownEnd, this.#steady() + leftMs);
    // a code grants nothing itself: it can only be exchanged for a sign-in
    const isUsable = credential.kind !== 'code' && credential.revokedAt === null;
    const entry = isUsable ? { credential: known, principal: principalOf(known, this.#redactedRoles), endsAt } : null;
    this.#cache(hash, entry);
    if (entry !== null && this.#isLive(entry)) this.#live.set(credential.id, entry.principal);
    return entry;
  }

  #isLive({ credential, endsAt }: Entry): boolean {
    return isLive(credential, this.#now()) && this.#steady() < endsAt;
  }

  #cache(hash: string, entry: Entry | null): void {
    this.#entries.delete(hash);
    this.#entries.set(hash, entry);
    for (let tries = this.#entries.size; this.#entries.size > MAX_ENTRIES && tries > 0; tries -= 1) {
      const [[oldest, forgotten] = []] = this.#entries;
      if (oldest === undefined) return;
      this.#entries.delete(oldest);
      // keeps a watched entry, because its watchers must be notified when it ends
      const isWatched = forgotten && this.#watchers.has(forgotten.credential.id);
      if (isWatched) this.#entries.set(oldest, forgotten);
      else if (forgotten) this.#live.delete(forgotten.credential.id);
    }
  }

  /** Ends streams whose credential has expired (an open stream doesn't count as use), and refreshes roles that are due. */
  async #endExpired(): Promise<void> {
    if (this.#watchers.isEmpty) return;
    for (const [hash, entry] of [...this.#entries]) {
      if (entry === null || !this.#watchers.has(entry.credential.id)) continue;
      const { id, idleMs } = entry.credential;
      // use by another instance counts too
      const now = this.#isLive(entry) || idleMs === null ? entry : await this.#readEntry(hash);
      if (now === null || !this.#isLive(now)) this.#watchers.notify(id);
      else if (this.#isRoleDue(now.credential)) void this.#refresh(id);
    }
  }

  /** Persists last-used times. Doesn't bump the version: permissions are unchanged. */
  async #persistUse(): Promise<void> {
    this.#persistedAt = this.#steady();
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
        // ignored: the next attempt writes a later time
      });
  }
}
