/** The agents of the demo. Each plays its recordings in turn, every time as a new session. */
export interface DemoAgent {
  agentId: string;
  /** Names of recordings; played from the first to the last and over again. */
  recordings: readonly string[];
  /** How far into its first recording the agent is when the demo starts, in ms. */
  beginsAtMs: number;
  /** How long it rests after each of its first sessions, in ms. */
  restMs: number;
}

/** An agent's first sessions follow each other quickly: whoever has just opened the demo sees a lot happen. */
const LIVELY_SESSIONS = 2;
/** From then on each rests longer by this, so that a demo left alone does not fill the lists. */
const LATER_REST_MS = 18_000;

/** @param round how many sessions the agent has had before the one it rests from */
export function restAfter(agent: DemoAgent, round: number): number {
  return round < LIVELY_SESSIONS ? agent.restMs : agent.restMs + LATER_REST_MS;
}

/**
 * The beginnings are chosen so that in the first ten seconds several background tasks end and their agents wake up by
 * themselves, at different moments, while others still work towards it.
 */
export const FLEET: readonly DemoAgent[] = [
  { agentId: 'checkout-service', recordings: ['test-run', 'folded', 'permission'], beginsAtMs: 7_500, restMs: 9_000 },
  { agentId: 'release-train', recordings: ['deploy-watch', 'long-build'], beginsAtMs: 7_500, restMs: 12_000 },
  { agentId: 'market-research', recordings: ['research', 'triple'], beginsAtMs: 5_000, restMs: 10_000 },
  { agentId: 'android-app', recordings: ['long-build', 'interrupted'], beginsAtMs: 0, restMs: 8_000 },
  { agentId: 'data-pipeline', recordings: ['permission', 'failure'], beginsAtMs: 0, restMs: 11_000 },
  { agentId: 'web-frontend', recordings: ['message-while-waking', 'test-run'], beginsAtMs: 0, restMs: 7_000 },
  { agentId: 'infra-terraform', recordings: ['triple', 'deploy-watch', 'resume'], beginsAtMs: 2_000, restMs: 13_000 },
];
