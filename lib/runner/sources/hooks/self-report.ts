/** What an agent says of itself, by its hooks. */
export type AgentSays = 'starting' | 'busy' | 'idle' | 'compacting';

/** What the agent said last. A hook that is heard behind later ones changes nothing they said. */
export class SelfReport {
  #says: AgentSays = 'starting';
  /** When that hook ran. */
  #ranAt = 0;
  #heardAt: number;

  constructor(now: number) {
    this.#heardAt = now;
  }

  get says(): AgentSays {
    return this.#says;
  }

  get heardAt(): number {
    return this.#heardAt;
  }

  heard(says: AgentSays, ranAt: number, now: number): void {
    if (ranAt < this.#ranAt) return;
    this.#ranAt = ranAt;
    this.#says = says;
    this.#heardAt = now;
  }

  /** The agent does nothing, though no hook said so. */
  concluded(now: number): void {
    this.heard('idle', this.#ranAt, now);
  }
}
