import type { Permission } from '@interlude/protocol/scope';
import { may, type Principal } from './principal';

/** A stream, or another long use of a credential. */
export interface Watcher {
  needs: Permission;
  /** True if the output is already redacted. */
  redacts: boolean;
  onEnd: () => void;
}

/** The uses in progress, by credential. A use ends once its credential no longer covers it. */
export class CredentialWatchers {
  readonly #byCredential = new Map<string, Set<Watcher>>();

  get credentialIds(): string[] {
    return [...this.#byCredential.keys()];
  }

  get isEmpty(): boolean {
    return this.#byCredential.size === 0;
  }

  has(credentialId: string): boolean {
    return this.#byCredential.has(credentialId);
  }

  /** @returns a function that stops watching */
  add(credentialId: string, watcher: Watcher): () => void {
    const watchers = this.#byCredential.get(credentialId) ?? new Set();
    this.#byCredential.set(credentialId, watchers.add(watcher));
    return () => this.#remove(credentialId, watchers, watcher);
  }

  /**
   * Ends the uses that a credential no longer covers.
   *
   * @param principal its current permissions; undefined once it has ended
   */
  notify(credentialId: string, principal?: Principal): void {
    const watchers = this.#byCredential.get(credentialId) ?? new Set();
    for (const watcher of [...watchers]) {
      if (isCovered(watcher, principal)) continue;
      this.#remove(credentialId, watchers, watcher);
      watcher.onEnd();
    }
  }

  #remove(credentialId: string, watchers: Set<Watcher>, watcher: Watcher): void {
    watchers.delete(watcher);
    if (watchers.size === 0 && this.#byCredential.get(credentialId) === watchers)
      this.#byCredential.delete(credentialId);
  }
}

export function isCovered({ needs, redacts }: Watcher, principal: Principal | undefined): boolean {
  return principal !== undefined && may(principal, needs) && (redacts || !principal.redacts);
}
