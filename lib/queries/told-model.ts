import { Pace } from '@/db/next-turn';
import { redactModel } from '@/lib/redaction/redact-model';

/** A read model as a reader is told it: without secrets for one who is told none. Others get their turns meanwhile. */
export async function toldModel<Model>(model: Model, { redacts }: { redacts: boolean }): Promise<Model> {
  if (!redacts || typeof model !== 'object' || model === null) return model;
  const pace = new Pace();
  return redactModel(model, () => (pace.isDue ? pace.rest() : null));
}
