import { inProcessServer } from '../support/server-target';
import { describeAccessContract } from './access-contract';

describeAccessContract('in this process', inProcessServer);
