import { inProcessServer } from '../support/server-target';
import { describeStreamContract } from './stream-contract';

describeStreamContract('in this process', inProcessServer);
