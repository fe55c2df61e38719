import { type RedactedFor, redactedMetrics } from '@interlude/protocol/redaction/outlets';
import type { Database } from '@/db/client';
import type { TtlCache } from '@/db/ttl-cache';
import { Yielder } from '@/db/yield-to-loop';
import { gaugesText } from './gauges';
import { readGauges } from './read-gauges';
import type { Telemetry } from './telemetry';

/** How a process stands at the moment. */
export interface ProcessState {
  subscribers: number;
  writes: { jobs: number; bytes: number };
  reads: number;
}

export interface ProcessMetrics {
  telemetry: Telemetry;
  text(): Promise<string>;
}

/** Begins to count what a process does. Null where there is none that lasts. */
export type CountProcess = (state: () => ProcessState) => ProcessMetrics | null;

/** Several who ask within this time are told the same. */
const SHARED_MS = 1_000;

/**
 * What `GET /metrics` answers: how the fleet stands, from the database, and, of a process that lasts, what it has done.
 */
export class Metrics {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #process: ProcessMetrics | null;
  readonly #kept: TtlCache<RedactedFor<'metrics'>>;

  /** @param ofProcess what this process counts; null if it does not last */
  constructor(
    database: Database,
    now: () => number,
    ofProcess: ProcessMetrics | null,
    kept: TtlCache<RedactedFor<'metrics'>>,
  ) {
    this.#kept = kept;
    this.#database = database;
    this.#now = now;
    this.#process = ofProcess;
  }

  async text(): Promise<RedactedFor<'metrics'>> {
    return this.#kept.get(
      () => performance.now(),
      () => this.#read(),
      () => SHARED_MS,
    );
  }

  async #read(): Promise<RedactedFor<'metrics'>> {
    const gauges = await this.#database.reads.run('metrics', () => readGauges(this.#database, this.#now()));
    const ofProcess = (await this.#process?.text()) ?? NOT_COUNTED;
    const pace = new Yielder();
    return redactedMetrics(`${gaugesText(gauges)}\n${ofProcess}`, pace.restIfDue);
  }
}

const NOT_COUNTED = '# This process does not last between requests: what it has done is not counted.\n';
