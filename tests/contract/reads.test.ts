import { inProcessServer } from '../support/server-target';
import { describeReadsContract } from './reads-contract';

describeReadsContract('in this process', inProcessServer);
