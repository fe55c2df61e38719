import { MAX_EVERY_MS } from '@interlude/protocol/limits';
import type { OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { hasDue } from '@/db/row-sweep';
import { UNINDEXED_LOGS } from '@/lib/server/log-store/chunk-lines';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { AccessStage } from './access-stage';
import { PNG } from './attachments';
import { stepOf } from './numbered-work';

/** A dashboard with something in nearly every table, on a file unless an address is given; and an agent that can go on. */
export class WellUsed {
  readonly stage: AccessStage;
  readonly agentId = 'worker';
  #seq = 0;
  #step = 0;

  private constructor(stage: AccessStage) {
    this.stage = stage;
  }

  /** @param env of the dashboard */
  static async start(env: Record<string, string> = {}): Promise<WellUsed> {
    const used = new WellUsed(await AccessStage.start({ env }));
    await used.work(12);
    await used.#fillRest();
    return used;
  }

  get file(): string {
    return `${this.stage.dataDir}/interlude.db`;
  }

  /** For the command line on the same machine. */
  get env(): Record<string, string> {
    return { INTERLUDE_DATA_DIR: this.stage.dataDir };
  }

  /** Does the next steps, each in a request of its own. @returns the last acknowledged `seq` */
  async work(steps: number): Promise<number> {
    for (let done = 0; done < steps; done += 1) {
      this.#step += 1;
      await this.send(stepOf(this.agentId, this.#step).records);
    }
    return this.#seq;
  }

  async send(records: readonly OutgoingRecord[]): Promise<void> {
    const body = {
      producer: { id: this.agentId, epoch: 1 },
      records: records.map((record, at) => ({ ...record, seq: this.#seq + at + 1 })),
    };
    await this.stage.ask('/events', { method: 'POST', body });
    this.#seq += records.length;
  }

  async #fillRest(): Promise<void> {
    const session = '/sessions/worker-a';
    await this.stage.ask(`${session}/messages`, { method: 'POST', body: { text: 'Hello', clientId: 'c1' } });
    await this.stage.send(`/api/v1${session}/attachments?name=dot.png`, {
      method: 'POST',
      body: PNG,
      headers: { 'content-type': 'image/png' },
    });
    await this.stage.token({ role: 'viewer', name: 'The wall' });
    await this.send([
      ...Array.from({ length: 600 }, (_, at) => line(`needle-${at} in a stack of hay`)),
      line('claude hook failed: exit code 1'),
      // Otherwise the server writes after two minutes that the agent is silent, while a slow test compares rows.
      { kind: 'status', agentId: this.agentId, occurredAt: Date.now(), status: { everyMs: MAX_EVERY_MS } },
    ]);
    await this.settle();
    // what was removed leaves its mark in the search table
    await this.#keeper().retain();
  }

  /** Indexes the log to its end. Otherwise the dashboard does so a moment later, while a test compares rows. */
  async settle(): Promise<void> {
    const { reader } = this.stage.parts.database;
    do await this.#keeper().indexAll();
    while (await hasDue(reader, [UNINDEXED_LOGS]));
  }

  #keeper(): LogKeeper {
    const { database, now } = this.stage.parts;
    return new LogKeeper({ database, now }, { maxAgeMs: 365 * 86_400_000, maxBytes: 12_000 });
  }
}

function line(message: string): OutgoingRecord {
  return {
    kind: 'log',
    agentId: 'worker',
    occurredAt: Date.now(),
    log: { level: 'info', component: 'hay', message },
  };
}
