import { maskDigests } from '@interlude/protocol/redaction/mask-digests';
import { redactModel } from '@interlude/protocol/redaction/redact-model';
import { Yielder } from '@/db/yield-to-loop';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';

/**
 * A read model as a reader sees it: without secrets for a redacted reader, and with the digests that the reader may have.
 * Others get their turns meanwhile.
 */
export async function toldModel<Model>(
  model: Model,
  { redacts }: { redacts: boolean },
  digests: ShownDigests,
): Promise<Model> {
  if (typeof model !== 'object' || model === null) return model;
  const pace = new Yielder();
  const shown = redacts ? await redactModel(model, pace.restIfDue) : model;
  // readers who see everything, most of them, cost no walk
  return digests === PLAIN_DIGESTS ? shown : maskDigests(shown, digests);
}
