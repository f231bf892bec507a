import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.cjk.CJKAnalyzer;
import org.apache.lucene.analysis.core.WhitespaceTokenizer;
import org.elasticsearch.action.bulk.BulkRequestBuilder;
import org.elasticsearch.action.bulk.BulkResponse;
import org.elasticsearch.action.search.SearchResponse;
import org.elasticsearch.action.support.WriteRequest.RefreshPolicy;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.metadata.IndexNameExpressionResolver;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.IndexScopedSettings;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.settings.SettingsFilter;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.index.analysis.AnalyzerProvider;
import org.elasticsearch.index.analysis.AnalyzerScope;
import org.elasticsearch.index.analysis.TokenizerFactory;
import org.elasticsearch.index.query.QueryBuilder;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.AnalysisPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestChannel;
import org.elasticsearch.rest.RestController;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.rest.action.RestActions;
import org.elasticsearch.search.SearchHit;

/** Stands in for the modules that Maven Central does not have: Lucene's tokenizer and analyzer by their names, and
 * `_delete_by_query`, which deletes in bulk requests what a search finds. */
public class TestModules extends Plugin implements AnalysisPlugin, ActionPlugin {
    @Override
    public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("whitespace", (index, environment, name, settings) ->
            TokenizerFactory.newFactory(name, () -> new WhitespaceTokenizer(settings.getAsInt("max_token_length", 255))));
    }

    @Override
    public Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> getAnalyzers() {
        return Map.of("cjk", (index, environment, name, settings) -> new Cjk(name));
    }

    @Override
    public Collection<RestHandler> getRestHandlers(Settings settings, NamedWriteableRegistry registry,
            RestController controller, ClusterSettings clusterSettings, IndexScopedSettings indexSettings,
            SettingsFilter filter, IndexNameExpressionResolver resolver, Supplier<DiscoveryNodes> nodes,
            Predicate<NodeFeature> features) {
        return List.of(new DeleteByQuery());
    }

    private static class Cjk implements AnalyzerProvider<CJKAnalyzer> {
        private final String name;
        private final CJKAnalyzer analyzer = new CJKAnalyzer();

        Cjk(String name) {
            this.name = name;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public AnalyzerScope scope() {
            return AnalyzerScope.INDICES;
        }

        @Override
        public CJKAnalyzer get() {
            return analyzer;
        }
    }

    private static class DeleteByQuery extends BaseRestHandler {
        @Override
        public String getName() {
            return "delete_by_query";
        }

        @Override
        public List<Route> routes() {
            return List.of(new Route(RestRequest.Method.POST, "/{index}/_delete_by_query"));
        }

        @Override
        protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) throws java.io.IOException {
            String index = request.param("index");
            request.param("refresh");
            request.param("conflicts");
            QueryBuilder query = RestActions.getQueryContent(request.contentParser());
            return channel -> client.threadPool().generic().execute(() -> answer(channel, index, query, client));
        }

        private void answer(RestChannel channel, String index, QueryBuilder query, NodeClient client) {
            try {
                String failures = delete(index, query, client);
                channel.sendResponse(new RestResponse(RestStatus.OK, "application/json", "{\"failures\":[" + failures + "]}"));
            } catch (Exception error) {
                try {
                    channel.sendResponse(new RestResponse(channel, error));
                } catch (java.io.IOException broken) {
                    throw new java.io.UncheckedIOException(broken);
                }
            }
        }

        /** Delete a page of hits at a time; return failures. */
        private String delete(String index, QueryBuilder query, NodeClient client) {
            while (true) {
                BulkRequestBuilder bulk = client.prepareBulk().setRefreshPolicy(RefreshPolicy.IMMEDIATE);
                SearchResponse found = client.prepareSearch(index).setQuery(query).setSize(1000).setFetchSource(false).get();
                try {
                    for (SearchHit hit : found.getHits()) {
                        String routing = hit.field("_routing").getValue();
                        bulk.add(client.prepareDelete(hit.getIndex(), hit.getId()).setRouting(routing));
                    }
                } finally {
                    found.decRef();
                }
                if (bulk.numberOfActions() == 0) {
                    return "";
                }
                BulkResponse done = bulk.get();
                if (done.hasFailures()) {
                    return "\"some documents were not deleted\"";
                }
            }
        }
    }
}
