import { AppError, inShort } from '@interlude/protocol/errors';
import type { Permission, Role } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement } from '@libsql/client';
import type { ContextKind, Database } from '@/db/client';
import type { ResultRows } from '@/db/reader';
import { pause } from '@/db/yield-to-loop';
import { CREDENTIAL_COLUMNS, type Credential, credentialFromRow, isLive } from './credential-rows';
import { LOCAL_ID } from './person-of';
import { may, OWNER, type Principal } from './principal';
import { secretHash } from './secret';

/** How often to look whether any credential changed, while somebody uses one here. */
const LOOK_MS = 500;
/** For how long what was last looked at counts. */
const FRESH_MS = 1_500;
/** How long after the last request by a credential to go on looking. */
const REST_AFTER_MS = 10_000;
/** How often the times of use are written down. */
const NOTE_USE_MS = 60_000;
/** Most that are remembered, known and unknown ones together. */
const MOST = 20_000;

/** Longest wait for the provider's answer about a role; then the stored role is used. */
const REFRESH_WAIT_MS = 2_000;

/** How long the database may take to answer. */
const PATIENCE_MS = 5_000;

interface Entry {
  principal: Principal;
  credential: Credential;
  /** When its time is over by the steady clock: setting the other one back makes it no longer. */
  endsAt: number;
}

/** What goes on by a credential, as long as that lets it. */
interface Watcher {
  needs: Permission;
  /** Whether secrets are taken out of what it tells. */
  redacts: boolean;
  onEnd: () => void;
}

/**
 * The credentials that are in use in this process, so that knowing one again needs no query.
 *
 * Ordering: a credential that was revoked, here or by another process, lets nobody in two seconds later, and its
 * streams have ended by then. So have those of one that may less than they need.
 * Failure: while the database does not answer, what is remembered stops counting after a moment: nobody comes in by a
 * credential that may have been revoked.
 */
export class CredentialBook {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #steady: () => number;
  readonly #redactedRoles: readonly Role[];
  readonly #refreshRole: ((credentialId: string) => Promise<void>) | null;
  /** Refreshes in progress, by the credential's id. */
  readonly #refreshing = new Map<string, Promise<void>>();
  /** By the hash of the secret; null for one that lets nobody in. */
  readonly #entries = new Map<string, Entry | null>();
  /** By the credential's id. */
  readonly #live = new Map<string, Principal>();
  readonly #watchers = new Map<string, Set<Watcher>>();
  readonly #used = new Map<string, number>();
  #version: number | null = null;
  /** How often everything was read again. */
  #generation = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #usedAt = Number.NEGATIVE_INFINITY;
  #notedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;
  readonly #lasts: boolean;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Whether the last use that is written down is long ago. */
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
    /** Who is told no secrets, whatever the credential. */
    redactedRoles?: readonly Role[] | undefined;
    kind?: ContextKind | undefined;
    /** Refreshes the role of a sign-in. Never rejects. */
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
   * Who has this secret. Answers at once where it is known and was looked at a moment ago.
   *
   * @param isUse false for a request that a page sent by itself
   * @returns null for one that lets nobody in
   * @throws AppError `unavailable` while the database does not answer
   */
  find(secret: string, { isUse = true } = {}): Principal | null | Promise<Principal | null> {
    const hash = secretHash(secret);
    this.#usedAt = this.#steady();
    if (!this.#lasts) return this.#readOnce(hash, isUse);
    this.#keep();
    if (this.#usedAt - this.#lookedAt > FRESH_MS) return this.#look().then(() => this.#known(hash, isUse));
    return this.#known(hash, isUse);
  }

  /** Where nothing is remembered between two requests: neither who it was nor that the use is still to be noted. */
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

  /** @param refreshes whether to wait for the role of a sign-in if it is due to be asked again */
  #known(hash: string, isUse: boolean, refreshes = true): Principal | null | Promise<Principal | null> {
    const entry = this.#entries.get(hash);
    if (entry === undefined) {
      return this.#read(hash, isUse).then((found) => (found === null ? null : this.#known(hash, isUse, refreshes)));
    }
    if (entry === null) return null;
    const { credential, principal } = entry;
    if (!this.#isLive(entry)) {
      // It may have been used elsewhere meanwhile.
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

  /** As `#refresh`, but waits no longer than REFRESH_WAIT_MS. */
  #refreshSoon(credentialId: string): Promise<void> {
    return Promise.race([this.#refresh(credentialId), pause(REFRESH_WAIT_MS)]);
  }

  /** Refreshes a role, once for all requests that wait for it, and reads the result. Never rejects. */
  #refresh(credentialId: string): Promise<void> {
    const refreshing =
      this.#refreshing.get(credentialId) ??
      (this.#refreshRole?.(credentialId) ?? Promise.resolve())
        .then(() => this.changed())
        .finally(() => this.#refreshing.delete(credentialId));
    this.#refreshing.set(credentialId, refreshing);
    return refreshing;
  }

  /**
   * Calls back once when a credential ends, also by its time, or does not permit any more what goes on by it. Who was
   * told secrets and is to be told none counts as such.
   *
   * @param principal as it was when that began
   * @returns how to stop waiting for that
   */
  watch({ credentialId, redacts }: Principal, needs: Permission, onEnd: () => void): () => void {
    // the owner's token is of this process's environment
    if (credentialId === OWNER.credentialId) return () => {};
    const watcher = { needs, redacts, onEnd };
    // it may have changed since it was found
    if (!lets(this.#live.get(credentialId), watcher)) this.#version = null;
    const watchers = this.#watchers.get(credentialId) ?? new Set();
    this.#watchers.set(credentialId, watchers.add(watcher));
    this.#keep();
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(credentialId) === watchers) this.#watchers.delete(credentialId);
    };
  }

  /** Somebody changed a credential here: looks at once. Never rejects. */
  async changed(): Promise<void> {
    // one that runs may have begun before the change
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

  /** @throws AppError `unavailable`, also if the database takes too long */
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

  /** Something changed: what is remembered is read again, and what is not there any more is forgotten. */
  async #readAgain(version: number): Promise<void> {
    this.#generation += 1;
    const hashes = [...this.#entries.keys()];
    const watched = [...this.#watchers.keys()];
    const { rows } = await this.#ask({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials
        WHERE hash IN (SELECT value FROM json_each(?)) OR id IN (SELECT value FROM json_each(?))`,
      args: [JSON.stringify(hashes), JSON.stringify(watched)],
    });
    // those that were asked for meanwhile are read by whoever asked
    const before = new Map(this.#entries);
    this.#entries.clear();
    this.#live.clear();
    for (const row of rows) {
      const { hash, ...credential } = credentialFromRow(row);
      this.#take(hash, credential, before.get(hash)?.endsAt);
    }
    for (const id of watched) this.#end(id, this.#live.get(id));
    // A stream that began meanwhile may use a credential that was not read.
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
    // it may have been read just before what changed meanwhile
    if (generation !== this.#generation) return this.#readEntry(hash);
    const [row] = rows;
    if (row === undefined) {
      this.#remember(hash, null);
      return null;
    }
    const { hash: _, ...credential } = credentialFromRow(row);
    return this.#take(hash, credential, this.#entries.get(hash)?.endsAt);
  }

  /** What is not live now by the clock alone may be again: by a use elsewhere, or when the clock is set right. */
  #take(hash: string, credential: Credential, endedAt = Number.POSITIVE_INFINITY): Entry | null {
    const usedAt = this.#used.get(credential.id) ?? 0;
    const known = { ...credential, lastUsedAt: Math.max(credential.lastUsedAt, usedAt) };
    const leftMs = known.expiresAt === null ? Number.POSITIVE_INFINITY : known.expiresAt - this.#now();
    const endsAt = Math.min(endedAt, this.#steady() + leftMs);
    // a code lets nobody in: it is exchanged for a sign-in
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
      // whoever listens by it must hear of its end
      const isWatched = forgotten && this.#watchers.has(forgotten.credential.id);
      if (isWatched) this.#entries.set(oldest, forgotten);
      else if (forgotten) this.#live.delete(forgotten.credential.id);
    }
  }

  /**
   * Ends the streams of expired credentials: an open stream does not count as use. Refreshes the roles of the others that
   * are due.
   */
  async #endOver(): Promise<void> {
    if (this.#watchers.size === 0) return;
    for (const [hash, entry] of [...this.#entries]) {
      if (entry === null || !this.#watchers.has(entry.credential.id)) continue;
      const { id, idleMs } = entry.credential;
      // requests to another instance are use too
      const now = this.#isLive(entry) || idleMs === null ? entry : await this.#readEntry(hash);
      if (now === null || !this.#isLive(now)) this.#end(id);
      else if (this.#isRoleDue(now.credential)) void this.#refresh(id);
    }
  }

  /** @param principal what it lets somebody do now; what it does not, ends */
  #end(credentialId: string, principal?: Principal): void {
    const watchers = this.#watchers.get(credentialId) ?? new Set();
    for (const watcher of [...watchers]) {
      if (lets(principal, watcher)) continue;
      watchers.delete(watcher);
      watcher.onEnd();
    }
    if (watchers.size === 0) this.#watchers.delete(credentialId);
  }

  /** Writes down when each was last used. It is no change of what anybody may. */
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
        // the next time tells of a later use
      });
  }
}

function lets(principal: Principal | undefined, { needs, redacts }: Watcher): boolean {
  return principal !== undefined && may(principal, needs) && (redacts || !principal.redacts);
}

/** @param redactedRoles who is told no secrets; an embed's own credential says that of it */
export function principalOf(credential: Credential, redactedRoles: readonly Role[] = []): Principal {
  const { id, name, role, scope, memberId, expiresAt, parentOrigin, kind, redacts } = credential;
  return {
    // All sign-ins with this machine's link are one person.
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
