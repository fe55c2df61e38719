import { inProcessServer } from '../support/server-target';
import { describeReadModelsContract } from './read-models-contract';

describeReadModelsContract('in this process', inProcessServer);
