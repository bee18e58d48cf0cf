// A source as a table that Spark asks for columns and conditions. Compiled by the driver's JVM, with the compiler that is in Spark;
// see asked_table.py.
import java.util.*;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.metric.*;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

public class StoreTable implements SupportsRead {
  final SparkSession session;
  final String source;
  final Map options;
  final StructType all;
  final Number mostRows;

  // mostRows: null if it is not known.
  public StoreTable(SparkSession session, String source, Map options, StructType all, Number mostRows) {
    this.session = session;
    this.source = source;
    this.options = new HashMap(options);
    this.all = all;
    this.mostRows = mostRows;
  }

  public Dataset frame() {
    return Dataset.ofRows(session, DataSourceV2Relation.create(this, scala.Option.empty(), scala.Option.empty()));
  }

  public String name() { return source; }
  public StructType schema() { return all; }
  public Set capabilities() { return EnumSet.of(TableCapability.BATCH_READ); }

  // One for each place of each question at which the table is asked: nothing is shared between two of them.
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) { return new Asked(this); }

  static class Asked implements SupportsPushDownRequiredColumns, SupportsPushDownFilters {
    final StoreTable table;
    StructType columns;
    Filter[] taken = new Filter[0];
    final List conditions = new ArrayList();

    Asked(StoreTable table) { this.table = table; columns = table.all; }

    public void pruneColumns(StructType required) {
      columns = required.length() > 0 ? required : new StructType(new StructField[] {cheapest(table.all)});
    }

    // All of them are left to Spark, too: a source only leaves out what they surely leave out.
    public Filter[] pushFilters(Filter[] filters) {
      List kept = new ArrayList();
      for (int i = 0; i < filters.length; i++) if (note(filters[i])) kept.add(filters[i]);
      taken = (Filter[]) kept.toArray(new Filter[kept.size()]);
      return filters;
    }

    public Filter[] pushedFilters() { return taken; }
    public Scan build() { return new StoreScan(this); }

    boolean note(Filter one) {
      if (one instanceof EqualTo) return note(one, ((EqualTo) one).attribute(), ((EqualTo) one).value());
      if (one instanceof EqualNullSafe) return note(one, ((EqualNullSafe) one).attribute(), ((EqualNullSafe) one).value());
      if (one instanceof GreaterThan) return note(one, ((GreaterThan) one).attribute(), ((GreaterThan) one).value());
      if (one instanceof GreaterThanOrEqual)
        return note(one, ((GreaterThanOrEqual) one).attribute(), ((GreaterThanOrEqual) one).value());
      if (one instanceof LessThan) return note(one, ((LessThan) one).attribute(), ((LessThan) one).value());
      if (one instanceof LessThanOrEqual) return note(one, ((LessThanOrEqual) one).attribute(), ((LessThanOrEqual) one).value());
      if (one instanceof StringContains) return note(one, ((StringContains) one).attribute(), ((StringContains) one).value());
      if (one instanceof In) return note(one, ((In) one).attribute(), ((In) one).values());
      return false;
    }

    boolean note(Filter one, String column, Object value) {
      Object[] values = value instanceof Object[] ? (Object[]) value : new Object[] {value};
      List plain = new ArrayList();
      for (int i = 0; i < values.length; i++) {
        Object found = values[i];
        if (found instanceof java.sql.Timestamp) found = Long.valueOf(((java.sql.Timestamp) found).getTime());
        if (found instanceof java.time.Instant) found = Long.valueOf(((java.time.Instant) found).toEpochMilli());
        if (!(found instanceof String || found instanceof Integer || found instanceof Long)) return false;
        plain.add(found);
      }
      if (plain.isEmpty()) return false;
      conditions.add(Arrays.asList(new Object[] {one.getClass().getSimpleName(), column, plain}));
      return true;
    }
  }

  static StructField cheapest(StructType all) {
    for (int i = 0; i < all.length(); i++) if (all.fields()[i].dataType() instanceof LongType) return all.fields()[i];
    return all.fields()[0];
  }

  static class StoreScan implements Scan, SupportsReportStatistics {
    final Asked asked;
    private Scan made;

    StoreScan(Asked asked) { this.asked = asked; }

    public StructType readSchema() { return asked.columns; }

    // By which Spark chooses the side of a join that each task gets whole. Conditions are not counted: it is a bound.
    public Statistics estimateStatistics() {
      final Number rows = asked.table.mostRows;
      return new Statistics() {
        public OptionalLong sizeInBytes() {
          return rows == null ? OptionalLong.empty() : OptionalLong.of(rows.longValue() * (8 + asked.columns.defaultSize()));
        }
        public OptionalLong numRows() { return OptionalLong.empty(); }
      };
    }

    public String description() { return asked.table.source + " " + asked.columns.catalogString() + " " + asked.conditions; }
    public Scan.ColumnarSupportMode columnarSupportMode() { return made().columnarSupportMode(); }
    public CustomMetric[] supportedCustomMetrics() { return made().supportedCustomMetrics(); }
    public CustomTaskMetric[] reportDriverMetrics() { return made().reportDriverMetrics(); }
    public Batch toBatch() { return made().toBatch(); }

    // The source in Python, with these columns and conditions as its options.
    synchronized Scan made() {
      if (made != null) return made;
      Map given = new HashMap(asked.table.options);
      given.put("columns", String.join(",", asked.columns.fieldNames()));
      try {
        given.put("conditions", new ObjectMapper().writeValueAsString(asked.conditions));
      } catch (JsonProcessingException never) {
        throw new IllegalStateException(never);
      }
      Dataset frame = asked.table.session.read().format(asked.table.source).options(given).load();
      DataSourceV2Relation relation = (DataSourceV2Relation) frame.queryExecution().analyzed();
      made = ((SupportsRead) relation.table()).newScanBuilder(relation.options()).build();
      return made;
    }
  }
}
