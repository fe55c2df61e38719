import { inProcessTarget } from '../support/ingest-target';
import { describeIngestContract } from './ingest-contract';

describeIngestContract('in this process', () => inProcessTarget());
